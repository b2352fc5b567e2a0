"""What every room needs: labels, samples, checks, threads, progress. Imports nothing of ours."""
