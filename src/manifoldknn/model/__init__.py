"""What a fit leaves, and what is asked of it.

`fitted` is all of it in one object. Functions here take the fitted classifier, read its parameters
and `fitted_`, and hand back an answer or a new `Fitted`, which only the classifier puts in place.
`geometry` is who is near whom, searched or kept. `answering` turns similarities into answers,
`deciding` names the labels behind them, `quality` says how well rows fit in. `stream` takes rows
and labels in later (section 5 of the paper), `arrivals` are those rows. `cautions` are said before
and after a fit, `rowids` are what a user calls rows. `hidden_labels` are what labelled rows would
be called without their labels.
"""
