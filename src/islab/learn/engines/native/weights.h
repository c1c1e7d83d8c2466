// Everything about single weights and biases: moments, divergence and Adam.

#pragma once

#include "lanes.h"

namespace {

using islab::Block;
using islab::Network;
using islab::Parts;
using islab::Rules;
using islab::Slab;

// What a step knows about the weights (weights,) and biases (units,).
template <class T>
struct Weights {
    T *alpha, *not_alpha;      // both, for 1 - alpha would round to 0 for sure weights
    T *sigma, *slope;          // slope is dsigma/drho
    const T* mu;               // theta's, or times the flows' z
    T *factor, *by_factor;     // z of each weight and its gradient, with flows only
    T* multiplied;             // room for z mu, with flows only
    T *mean, *variance;        // E and V
    T *by_mean, *by_variance;  // gradients of the NLL, and of log r
    T *bias_sigma, *bias_slope, *bias_variance;
    T *by_bias, *by_bias_variance;
};

// -- the slab's divergence --------------------------------------------------------------------

// KL of N(mu, sigma^2) from the slab, and its derivatives.
template <class T>
struct SlabTerms {
    Lanes<T> value, by_mu, by_sigma;
};

template <class T>
struct GaussianSlab {
    T precision, constant;

    explicit GaussianSlab(double tau)
        : precision(T(1 / (tau * tau))), constant(T(std::log(tau) - 0.5)) {}

    SlabTerms<T> operator()(Lanes<T> mu, Lanes<T> sigma) const {
        const Lanes<T> square = sigma * sigma + mu * mu;
        return {constant - logarithm(sigma) + T(0.5) * precision * square, precision * mu,
                precision * sigma - T(1) / sigma};
    }
};

// The expectation of log(1 + w^2 / (df tau^2)) by Gauss-Hermite quadrature.
template <class T>
struct StudentSlab {
    const Slab& slab;
    T scale, df, constant;

    StudentSlab(const Slab& slab, double tau)
        : slab(slab),
          scale(T(1 / tau)),
          df(T(slab.df)),
          constant(T(std::log(tau) - slab.log_constant - half_log_2pi - 0.5)) {}

    SlabTerms<T> operator()(Lanes<T> mu, Lanes<T> sigma) const {
        Lanes<T> value{}, by_mu{}, by_sigma{};
        for (Index i = 0; i < slab.n_nodes; ++i) {
            const T node = T(slab.nodes[i]), share = T(slab.node_weights[i]);
            const Lanes<T> draw = (mu + sigma * node) * scale;
            const Lanes<T> excess = df + draw * draw;
            const Lanes<T> force = share * draw / excess;
            value += share * logarithm(excess * (T(1) / df));
            by_mu += force;
            by_sigma += node * force;
        }
        return {T(0.5) * (df + T(1)) * value + constant - logarithm(sigma),
                (df + T(1)) * scale * by_mu, (df + T(1)) * scale * by_sigma - T(1) / sigma};
    }

    static constexpr double half_log_2pi = 0.91893853320467274;
};

// Calls body(slab of this scale).
template <class T, class Body>
inline void with_slab(const Slab& slab, double tau, Body body) {
    if (slab.n_nodes)
        body(StudentSlab<T>(slab, tau));
    else
        body(GaussianSlab<T>(tau));
}

// -- moments ----------------------------------------------------------------------------------

// Of the weights in [begin, end), from w.mu; U is T or const T.
template <class T, class U>
void weight_moments(Index begin, Index end, const Parts<U>& theta, Weights<T>& w) {
    sweep<T>(begin, end, [&](auto at) {
        const Sigmoids<T> inclusion = sigmoids<T>(at.load(theta.lam));
        const Lanes<T> mu = at.load(w.mu), alpha = inclusion.yes;
        const Logistic<T> spread = logistic<T>(at.load(theta.rho));
        const Lanes<T> sigma = spread.softplus, mean = alpha * mu;
        at.store(w.alpha, alpha);
        at.store(w.not_alpha, inclusion.no);
        at.store(w.sigma, sigma);
        at.store(w.slope, spread.sigmoid);
        at.store(w.mean, mean);
        at.store(w.variance, Lanes<T>(alpha * (sigma * sigma + mu * (mu - mean))));
    });
}

template <class T, class U>
void bias_moments(Index n_units, const Parts<U>& theta, Weights<T>& w) {
    sweep<T>(0, n_units, [&](auto at) {
        const Logistic<T> spread = logistic<T>(at.load(theta.bias_rho));
        at.store(w.bias_sigma, spread.softplus);
        at.store(w.bias_slope, spread.sigmoid);
        at.store(w.bias_variance, Lanes<T>(spread.softplus * spread.softplus));
    });
}

// -- Adam -------------------------------------------------------------------------------------

template <class T>
struct Adam {
    T share1, share2, keep2, epsilon, root_scale;
    double rate_scale;

    Adam(const Rules& rules, Index step)
        : share1(T(1 - rules.beta1)),
          share2(T(1 - rules.beta2)),
          keep2(T(rules.beta2)),
          epsilon(T(rules.epsilon)),
          root_scale(T(1 / std::sqrt(1 - std::pow(rules.beta2, double(step))))),
          rate_scale(1 / (1 - std::pow(rules.beta1, double(step)))) {}

    // The parameter's new value; `rate` contains rate_scale.
    template <class Place>
    Lanes<T> step(Place at, Lanes<T> value, T* first, T* second, Lanes<T> gradient, T rate) const {
        Lanes<T> m = at.load(first), v = at.load(second);
        m = m + share1 * (gradient - m);
        v = keep2 * v + share2 * gradient * gradient;
        at.store(first, m);
        at.store(second, v);
        return value - rate * m / (square_root<T>(v) * root_scale + epsilon);
    }
};

// -- learning ---------------------------------------------------------------------------------

template <class T>
struct Learning {
    const Rules& rules;
    const Slab& slab;
    Parts<T> theta, first, second;
    Weights<T>& w;
    Adam<T> adam;
    T rate, lambda_rate;  // with Adam's rate_scale
    T kl_weight;
};

// One step of a block's weights in [begin, end).
template <bool flows, class T, class SlabType>
void step_weights(Index begin, Index end, const Block& block, const SlabType& slab,
                  const Learning<T>& l) {
    const T mu_rate = T(l.rate * block.mu_step), logit_psi = T(block.logit_psi);
    const T largest_rho = T(l.rules.largest_rho), largest_lambda = T(l.rules.largest_lambda);
    sweep<T>(begin, end, [&](auto at) {
        Lanes<T> mu = at.load(l.w.mu), rho = at.load(l.theta.rho), lam = at.load(l.theta.lam);
        const Lanes<T> alpha = at.load(l.w.alpha), sigma = at.load(l.w.sigma);
        const Lanes<T> gE = at.load(l.w.by_mean), gV = at.load(l.w.by_variance);
        const Lanes<T> not_alpha = at.load(l.w.not_alpha), c = fill<T>(l.kl_weight);
        const SlabTerms<T> kl = slab(mu, sigma);

        const Lanes<T> by_alpha = c * (kl.value + lam - logit_psi) + mu * gE +
                                  gV * (sigma * sigma + (not_alpha - alpha) * mu * mu);
        Lanes<T> by_mu = alpha * (gE + c * kl.by_mu + T(2) * gV * not_alpha * mu);
        const Lanes<T> by_sigma = alpha * (T(2) * gV * sigma + c * kl.by_sigma);
        const Lanes<T> by_rho = by_sigma * at.load(l.w.slope);
        const Lanes<T> by_lam = by_alpha * alpha * not_alpha;

        if constexpr (flows) {
            mu = at.load(l.theta.mu);
            at.store(l.w.by_factor, Lanes<T>(by_mu * mu));
            by_mu = by_mu * at.load(l.w.factor);
        }
        mu = l.adam.step(at, mu, l.first.mu, l.second.mu, by_mu, mu_rate);
        rho = l.adam.step(at, rho, l.first.rho, l.second.rho, by_rho, l.rate);
        lam = l.adam.step(at, lam, l.first.lam, l.second.lam, by_lam, l.lambda_rate);
        rho = at_most<T>(rho, largest_rho);
        lam = at_least<T>(at_most<T>(lam, largest_lambda), -largest_lambda);
        at.store(l.theta.mu, mu);
        at.store(l.theta.rho, rho);
        at.store(l.theta.lam, lam);
    });
}

// One step, and the moments for the next: in two loops, whose shorter chains of operations
// overlap better, over portions that stay in the cache. With flows the next z comes first.
template <bool flows, class T, class SlabType>
void learn_block(const Block& block, const SlabType& slab, const Learning<T>& l) {
    constexpr Index portion = 512;
    const Index stop = block.start + block.size;
    for (Index begin = block.start; begin < stop; begin += portion) {
        const Index end = begin + portion < stop ? begin + portion : stop;
        step_weights<flows, T>(begin, end, block, slab, l);
        if constexpr (!flows) weight_moments(begin, end, l.theta, l.w);
    }
}

template <class T>
void learn_biases(Index n_units, const Learning<T>& l) {
    const T largest_rho = T(l.rules.largest_rho), c = l.kl_weight;
    const GaussianSlab<T> slab(l.slab.bias_tau);
    sweep<T>(0, n_units, [&](auto at) {
        Lanes<T> mu = at.load(l.theta.bias_mu), rho = at.load(l.theta.bias_rho);
        const Lanes<T> sigma = at.load(l.w.bias_sigma);
        const SlabTerms<T> kl = slab(mu, sigma);
        const Lanes<T> by_mu = at.load(l.w.by_bias) + c * kl.by_mu;
        const Lanes<T> by_sigma = T(2) * sigma * at.load(l.w.by_bias_variance) + c * kl.by_sigma;
        const Lanes<T> by_rho = by_sigma * at.load(l.w.bias_slope);
        mu = l.adam.step(at, mu, l.first.bias_mu, l.second.bias_mu, by_mu, l.rate);
        rho = l.adam.step(at, rho, l.first.bias_rho, l.second.bias_rho, by_rho, l.rate);
        rho = at_most<T>(rho, largest_rho);
        at.store(l.theta.bias_mu, mu);
        at.store(l.theta.bias_rho, rho);
    });
    bias_moments(n_units, l.theta, l.w);
}

// -- the divergence's value -------------------------------------------------------------------

// Sum of value(place) over [begin, end); lanes past the end do not count.
template <class T, class Value>
double sum_over(Index begin, Index end, Value value) {
    double sum = 0;
    sweep<T>(begin, end, [&](auto at) {
        T lanes[width<T>];
        Lanes<T> values = value(at);
        std::memcpy(lanes, &values, sizeof lanes);
        for (Index i = 0; i < width<T> && at.at + i < end; ++i) sum += lanes[i];
    });
    return sum;
}

template <class T, class SlabType>
double block_divergence(const Block& block, const SlabType& slab, const Parts<const T>& theta,
                        const T* mu) {
    return sum_over<T>(block.start, block.start + block.size, [&](auto at) {
        const Lanes<T> lam = at.load(theta.lam);
        const Logistic<T> inclusion = logistic<T>(lam), spread = logistic<T>(at.load(theta.rho));
        const Lanes<T> included = slab(at.load(mu), spread.softplus).value;
        return inclusion.sigmoid * (included + lam - T(block.logit_psi)) - inclusion.softplus -
               T(block.log_not_psi);
    });
}

// `mu` are the means of the weights, theta's or times the flows' z.
template <class T>
double weight_divergence(const Network& net, const Slab& slab, const Parts<const T>& theta,
                         const T* mu) {
    double sum = 0;
    for (Index number = 0; number < net.n_blocks; ++number) {
        const Block& block = net.blocks[number];
        with_slab<T>(slab, block.tau, [&](const auto& scaled) {
            sum += block_divergence<T>(block, scaled, theta, mu);
        });
    }
    const GaussianSlab<T> bias_slab(slab.bias_tau);
    return sum + sum_over<T>(0, net.n_units, [&](auto at) {
               const Lanes<T> sigma = logistic<T>(at.load(theta.bias_rho)).softplus;
               return bias_slab(at.load(theta.bias_mu), sigma).value;
           });
}

}  // namespace
