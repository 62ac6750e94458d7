//! The totals of a batch as sums: cumulative since the batch's start, never less.

use super::attribute::{attribute, dollars};
use super::otlp::{
    KeyValue, Metric, MetricsRequest, Number, Point, ResourceMetrics, ScopeMetrics, Sum,
    Temporality,
};
use super::{Telemetry, nanoseconds};
use premath_kernel::json::stamp::Stamp;
use premath_kernel::record::live::LiveTotals;
use prost::Message;
use std::collections::BTreeMap;

/// A figure with the attribute by which it differs from others of its metric.
type Figure<'a> = (Option<(&'static str, &'a str)>, Number);

impl Telemetry {
    /// Returns the message of the totals as they were at a time. What is not known
    /// has no point.
    pub fn metrics(&self, totals: &LiveTotals, at: &Stamp) -> Vec<u8> {
        let (closes, used) = (totals.closes, totals.used);
        let closed = [
            ("first_pass", closes.first_pass),
            ("after_repair", closes.after_repair),
            ("after_retry", closes.after_retry),
        ];
        let closed = closed.map(|(how, count)| (Some(("how", how)), number(count)));
        let tokens = used.tokens.map(|count| (None, number(count)));
        let cost = used.cost_nano_usd.map(dollars);
        let cost = cost.map(|cost| (None, Number::Decimal(cost)));
        let attempts = [(None, number(totals.attempts))];
        let repairs = [(None, number(totals.repair_rounds))];
        let failed = counts("error.type", &totals.failures);
        let denied = counts("rule", &totals.denials);
        let metrics = [
            self.sum(("attempts", "{attempt}"), &attempts, at),
            self.sum(("closed_issues", "{issue}"), &closed, at),
            self.sum(("failed_attempts", "{attempt}"), &failed, at),
            self.sum(("repair_rounds", "{round}"), &repairs, at),
            self.sum(("denied_calls", "{call}"), &denied, at),
            self.sum(("tokens", "{token}"), tokens.as_slice(), at),
            self.sum(("cost", "{USD}"), cost.as_slice(), at),
        ];
        let metrics = metrics.into_iter().flatten().collect();
        let scope_metrics = vec![ScopeMetrics {
            scope: Some(self.scope()),
            metrics,
        }];
        let request = MetricsRequest {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(self.resource()),
                scope_metrics,
            }],
        };
        request.encode_to_vec()
    }

    /// Returns a metric, named below `premath.batch`; none without a figure.
    fn sum(
        &self,
        (name, unit): (&str, &str),
        figures: &[Figure<'_>],
        at: &Stamp,
    ) -> Option<Metric> {
        let points = figures.iter().map(|(label, value)| {
            let label = label.map(|(key, text)| attribute(key, text));
            let batch: KeyValue = attribute("premath.batch.id", &self.batch_id);
            Point {
                start_time_unix_nano: nanoseconds(&self.started_at),
                time_unix_nano: nanoseconds(at),
                value: Some(*value),
                attributes: [batch].into_iter().chain(label).collect(),
            }
        });
        (!figures.is_empty()).then(|| Metric {
            name: format!("premath.batch.{name}"),
            description: String::new(),
            unit: unit.to_owned(),
            sum: Some(Sum {
                data_points: points.collect(),
                aggregation_temporality: Temporality::Cumulative.into(),
                is_monotonic: true,
            }),
        })
    }
}

fn counts<'a>(key: &'static str, all: &'a BTreeMap<String, u64>) -> Vec<Figure<'a>> {
    let figure = |(name, count): (&'a String, &u64)| (Some((key, name.as_str())), number(*count));
    all.iter().map(figure).collect()
}

fn number(count: u64) -> Number {
    Number::Whole(i64::try_from(count).unwrap_or(i64::MAX))
}
