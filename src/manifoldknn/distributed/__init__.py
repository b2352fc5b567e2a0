from manifoldknn.distributed.estimator import DistributedManifoldKNN as DistributedManifoldKNN
__all__ = ["DistributedManifoldKNN"]
