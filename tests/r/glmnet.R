# What glmnet finds for squared errors, classes, counts with an offset, and amounts, for
# tests of the linear models: Rscript tests/r/glmnet.R writes tests/r/glmnet_rows.csv
# and tests/r/glmnet.csv.
suppressMessages(library(glmnet))

set.seed(2)
n <- 70
rows <- data.frame(x1 = rnorm(n), x2 = rnorm(n, 1), x3 = rbinom(n, 1, 0.4),
                   x4 = runif(n), x5 = rnorm(n))
predictor <- 0.3 + 0.8 * rows$x1 - 0.5 * rows$x2 + 0.6 * rows$x3
rows$gaussian <- round(predictor + rnorm(n), 3)
rows$binomial <- rbinom(n, 1, plogis(predictor))
rows$exposure <- round(runif(n, 0.2, 2), 2)
rows$poisson <- rpois(n, rows$exposure * exp(predictor))
rows$gamma <- round(rgamma(n, 2, 2 / exp(predictor)), 3) + 0.001
rows$weight <- round(runif(n, 0.5, 2), 2)
x <- as.matrix(rows[, 1:5])

# As a family object: "gaussian" scales y first, and with it the ridge part of a penalty.
families <- list(gaussian = gaussian(), binomial = "binomial", poisson = "poisson",
                 gamma = Gamma(link = "log"))
found <- list()
add <- function(name, values) {
  values <- as.numeric(values)
  found[[name]] <<- data.frame(name = name, number = seq_along(values) - 1, value = values)
}
# Fits with a family object end when the deviance changes by less than this.
glmnet.control(epsnr = 1e-14, mxitnr = 1000)
for (family in names(families)) for (l1_ratio in c(0.5, 1)) for (weighted in c(FALSE, TRUE)) {
  weights <- if (weighted) rows$weight else rep(1, n)
  offset <- if (family == "poisson") log(rows$exposure) else rep(0, n)
  fit <- glmnet(x, rows[[family]], families[[family]], weights, offset = offset,
                alpha = l1_ratio, lambda = 0.05, standardize = FALSE, thresh = 1e-24,
                maxit = 1e8)
  name <- paste(family, l1_ratio, if (weighted) "weighted" else "plain")
  add(paste(name, "coef"), coef(fit))
  # For each unit of weight.
  add(paste(name, "deviance"), deviance(fit) / sum(weights))
}
folder <- "tests/r"
write.csv(rows, file.path(folder, "glmnet_rows.csv"), row.names = FALSE)
results <- do.call(rbind, found)
results$value <- formatC(results$value, digits = 15, format = "g")
write.csv(results, file.path(folder, "glmnet.csv"), row.names = FALSE, quote = FALSE)
