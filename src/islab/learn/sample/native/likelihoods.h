// All likelihoods, by name.

#pragma once

#include "classes.h"
#include "counts.h"
#include "numbers.h"

namespace islab::sample {

inline std::unique_ptr<Likelihood> make_likelihood(const std::string& name) {
    if (name == "gaussian") return std::make_unique<Gaussian>();
    if (name == "bernoulli") return std::make_unique<Bernoulli>();
    if (name == "categorical") return std::make_unique<Categorical>();
    if (name == "ordinal") return std::make_unique<Ordinal>();
    if (name == "poisson") return std::make_unique<Poisson>();
    if (name == "negative_binomial") return std::make_unique<NegativeBinomial>();
    if (name == "zero_inflated_poisson") return std::make_unique<ZeroInflated>(false);
    if (name == "zero_inflated_negative_binomial") return std::make_unique<ZeroInflated>(true);
    if (name == "heteroscedastic") return std::make_unique<Heteroscedastic>();
    if (name == "student_t") return std::make_unique<StudentT>();
    throw std::invalid_argument("unknown likelihood: " + name);
}

}  // namespace islab::sample
