# What R's generalised, robust, ridge and quantile regressions find on one simulation,
# for tests of the linear models: Rscript tests/r/glm.R writes tests/r/glm_rows.csv and
# tests/r/glm.csv.
suppressMessages({library(MASS); library(quantreg)})

set.seed(3)
n <- 90
rows <- data.frame(x1 = rnorm(n), x2 = rnorm(n, 2, 3), x3 = rbinom(n, 1, 0.4),
                   x4 = runif(n))
predictor <- 0.4 + 0.7 * rows$x1 - 0.2 * rows$x2 + 0.6 * rows$x3
rows$gaussian <- round(predictor + rnorm(n), 3)
rows$heavy <- round(predictor + rt(n, 1.5), 3)
rows$binomial <- rbinom(n, 1, plogis(predictor))
rows$exposure <- round(runif(n, 0.3, 3), 2)
rows$poisson <- rpois(n, exp(predictor))
rows$claims <- rpois(n, rows$exposure * exp(predictor))
rows$gamma <- round(rgamma(n, 2, 2 / exp(predictor)), 3) + 0.001
rows$negative_binomial <- rnbinom(n, size = 1.5, mu = 2 * exp(predictor))
rows$weight <- round(runif(n, 0.5, 2), 2)
x <- as.matrix(rows[, 1:4])

found <- list()
add <- function(name, values) {
  values <- as.numeric(values)
  found[[name]] <<- data.frame(name = name, number = seq_along(values) - 1, value = values)
}
exact <- glm.control(epsilon = 1e-15, maxit = 200)
families <- list(gaussian = gaussian(), binomial = binomial(), poisson = poisson(),
                 claims = poisson(), gamma = Gamma(link = "log"))
for (family in names(families)) for (weighted in c(FALSE, TRUE)) {
  rows$w <- if (weighted) rows$weight else rep(1, n)
  rows$offset <- if (family == "claims") log(rows$exposure) else rep(0, n)
  # Weights that are no counts make R warn of classes.
  fit <- suppressWarnings(glm(rows[[family]] ~ x, families[[family]], rows, weights = w,
                              offset = offset, control = exact))
  name <- paste(family, if (weighted) "weighted" else "plain")
  add(paste(name, "coef"), coef(fit))
  add(paste(name, "deviance"), deviance(fit) / sum(rows$w))  # for each unit of weight
  if (!weighted && family != "claims") {
    add(paste(name, "standard_error"), summary(fit)$coefficients[, 2])
    # Squares of the first derivatives over second ones, without what rows have fitted of
    # themselves: the dispersion of coef_table. R's is one, or Pearson's.
    slopes <- residuals(fit, "response")
    if (family %in% c("gaussian", "binomial", "poisson"))
      add(paste(name, "dispersion"),
          sum(slopes^2) / sum(fit$weights * (1 - hatvalues(fit))))
    add(paste(name, "dispersion of R"), summary(fit)$dispersion)
  }
}

fit <- lm(gaussian ~ x1 + x2 + x3 + x4, rows)
add("lm p_value", summary(fit)$coefficients[, 4])
ends <- confint(fit, level = 0.9)
add("lm lower", ends[, 1])
add("lm upper", ends[, 2])
new <- data.frame(x1 = c(0, 2), x2 = c(1, -3), x3 = c(0, 1), x4 = c(0.5, 3))
add("lm means", t(predict(fit, new, interval = "confidence", level = 0.9)[, 2:3]))

# Half the mean deviance of rows by fits without them; of squares, the whole.
for (family in c("gaussian", "binomial", "poisson", "gamma")) {
  y <- rows[[family]]
  losses <- sapply(1:n, function(i) {
    fit <- glm.fit(cbind(1, x[-i, ]), y[-i], family = families[[family]], control = exact)
    mean <- families[[family]]$linkinv(sum(c(1, x[i, ]) * coef(fit)))
    families[[family]]$dev.resids(y[i], mean, 1)
  })
  add(paste(family, "left out"), mean(losses) * if (family == "gaussian") 1 else 0.5)
}

counts <- glm.nb(negative_binomial ~ x, rows, control = exact)
add("glm.nb theta", counts$theta)
for (weighted in c(FALSE, TRUE)) {
  rows$w <- if (weighted) rows$weight else rep(1, n)
  fit <- glm(negative_binomial ~ x, negative.binomial(counts$theta), rows, weights = w,
             control = exact)
  name <- paste("negative_binomial", if (weighted) "weighted" else "plain")
  add(paste(name, "coef"), coef(fit))
  add(paste(name, "deviance"), deviance(fit) / sum(rows$w))
}
add("glm.nb coef", coef(counts))

for (weighted in c(FALSE, TRUE)) for (k in c(1.345, 2)) {
  rows$w <- if (weighted) rows$weight else rep(1, n)
  fit <- rlm(heavy ~ x, rows, weights = w, wt.method = "case", k = k, acc = 1e-14,
             maxit = 2000)
  name <- paste("rlm", k, if (weighted) "weighted" else "plain")
  add(paste(name, "coef"), coef(fit))
  add(paste(name, "scale"), fit$s)
}

for (lambda in c(0.1, 5, 200))
  add(paste("lm.ridge", lambda, "coef"), coef(lm.ridge(gaussian ~ x, rows, lambda = lambda)))

for (weighted in c(FALSE, TRUE)) for (tau in c(0.2, 0.5, 0.9)) {
  rows$w <- if (weighted) rows$weight else rep(1, n)
  fit <- rq(heavy ~ x, tau, rows, weights = w)
  name <- paste("rq", tau, if (weighted) "weighted" else "plain")
  add(paste(name, "coef"), coef(fit))
  r <- rows$heavy - cbind(1, x) %*% coef(fit)  # of rq they are times the weights
  add(paste(name, "loss"), sum(rows$w * r * (tau - (r < 0))) / sum(rows$w))
}

folder <- "tests/r"
written <- rows[, setdiff(names(rows), c("w", "offset"))]
write.csv(written, file.path(folder, "glm_rows.csv"), row.names = FALSE)
results <- do.call(rbind, found)
results$value <- trimws(formatC(results$value, digits = 15, format = "g"))
write.csv(results, file.path(folder, "glm.csv"), row.names = FALSE, quote = FALSE)
