"""Pictures, behind `manifoldknn.plots`."""
