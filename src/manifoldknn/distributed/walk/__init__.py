"""One walk on machines that share the rows; see `manifoldknn.distributed`."""
