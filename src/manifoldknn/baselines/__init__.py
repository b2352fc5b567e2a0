"""What the paper compares with, where scikit-learn does not have it."""

from manifoldknn.baselines.geodesic import GeodesicKNNClassifier
from manifoldknn.baselines.kernel_nb import KernelNaiveBayes
from manifoldknn.baselines.weighted import WeightedKNNClassifier

__all__ = ["GeodesicKNNClassifier", "KernelNaiveBayes", "WeightedKNNClassifier"]
