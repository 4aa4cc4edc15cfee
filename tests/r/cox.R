# What survival::coxph and glmnet find on a small simulation, for tests of Cox
# regression: Rscript tests/r/cox.R writes tests/r/cox_rows.csv and tests/r/cox.csv.
suppressMessages({library(survival); library(glmnet)})

set.seed(1)
n <- 80
rows <- data.frame(x1 = rnorm(n), x2 = rnorm(n, 3), x3 = rbinom(n, 1, 0.4), x4 = runif(n))
hazard <- exp(0.9 * rows$x1 - 0.5 * rows$x3)
event_time <- rexp(n, hazard)
censoring <- rexp(n, 0.4)
# Rounded, so that there are ties.
rows$time <- ceiling(8 * pmin(event_time, censoring))
rows$event <- as.integer(event_time <= censoring)
rows$weight <- round(runif(n, 0.5, 2), 2)
x <- as.matrix(rows[, 1:4])
y <- Surv(rows$time, rows$event)

found <- list()
add <- function(name, values) {
  values <- as.numeric(values)
  found[[name]] <<- data.frame(name = name, number = seq_along(values) - 1, value = values)
}
exact <- coxph.control(eps = 1e-14, toler.chol = 1e-15, iter.max = 100)
for (ties in c("breslow", "efron")) for (weighted in c(FALSE, TRUE)) {
  weights <- if (weighted) rows$weight else rep(1, n)
  fit <- coxph(y ~ x, ties = ties, weights = weights, control = exact,
               nocenter = NULL)
  name <- paste("coxph", ties, if (weighted) "weighted" else "plain")
  add(paste(name, "coef"), coef(fit))
  # At zero and at the minimum.
  add(paste(name, "loglik"), fit$loglik)
  if (ties == "breslow" && !weighted) {
    add("basehaz", basehaz(fit, centered = TRUE)$hazard)
    add("survfit", survfit(fit, newdata = list(x = x[1:2, ]))$surv)
    add("concordance", concordance(y ~ fit$linear.predictors, reverse = TRUE)$concordance)
  }
}
for (l1_ratio in c(0, 0.5, 1)) for (weighted in c(FALSE, TRUE)) {
  weights <- if (weighted) rows$weight else rep(1, n)
  fit <- glmnet(x, y, "cox", weights, alpha = l1_ratio, lambda = 0.05,
                standardize = FALSE, thresh = 1e-20, maxit = 1e7)
  name <- paste("glmnet", l1_ratio, if (weighted) "weighted" else "plain")
  add(paste(name, "coef"), coef(fit))
  # For each unit of weight.
  add(paste(name, "deviance"), deviance(fit) / sum(weights))
}
folder <- "tests/r"
write.csv(rows, file.path(folder, "cox_rows.csv"), row.names = FALSE)
results <- do.call(rbind, found)
results$value <- formatC(results$value, digits = 15, format = "g")
write.csv(results, file.path(folder, "cox.csv"), row.names = FALSE, quote = FALSE)
