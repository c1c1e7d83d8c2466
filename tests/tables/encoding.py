"""Tables of tests as the covariates that they become."""

from islab.tables.columns import ColumnEncoder


def learn(table, missing="impute", **options):
    names = [str(name) for name in table.columns]
    return ColumnEncoder.learn(table, names, missing, **options)


def standardised(table):
    encoder, covariates = learn(table)
    center, scale = encoder.center_and_scale(covariates)
    return (covariates - center) / scale
