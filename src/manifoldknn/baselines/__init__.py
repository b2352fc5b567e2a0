"""What the paper compares with: what scikit-learn lacks, and settings for what it has."""

from manifoldknn.baselines.geodesic import GeodesicKNNClassifier
from manifoldknn.baselines.kernel_nb import KernelNaiveBayes
from manifoldknn.baselines.supervised import SUPERVISED, Baseline, supervised
from manifoldknn.baselines.weighted import WeightedKNNClassifier

__all__ = [
    "SUPERVISED",
    "Baseline",
    "GeodesicKNNClassifier",
    "KernelNaiveBayes",
    "WeightedKNNClassifier",
    "supervised",
]
