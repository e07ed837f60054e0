//! From figures to places on a drawing, and the marks between. Knows no drawing.

use crate::experiments::Scale;

/// One direction of a drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    scale: Scale,
    first: f64,
    last: f64,
}

impl Axis {
    /// So that all figures fit. Evenly divided axes of figures above 0 begin at 0.
    pub fn around(figures: impl IntoIterator<Item = f64>, scale: Scale) -> Axis {
        let figures: Vec<f64> = figures
            .into_iter()
            .filter(|figure| figure.is_finite() && (scale == Scale::Linear || *figure > 0.0))
            .collect();
        let (min, max) = (figures.iter().copied().reduce(f64::min), figures.iter().copied().reduce(f64::max));
        let (Some(min), Some(max)) = (min, max) else { return Axis { scale: Scale::Linear, first: 0.0, last: 1.0 } };
        match scale {
            Scale::Linear => {
                let (first, last) = (min.min(0.0), if max > min.min(0.0) { max } else { min.min(0.0) + 1.0 });
                let step = step(last - first);
                Axis { scale, first: (first / step).floor() * step, last: (last / step).ceil() * step }
            }
            Scale::Log => {
                let (first, last) = (min.log10(), max.log10());
                // To the next mark of 1, 2 or 5.
                let down = [1.0, 2.0, 5.0].map(|mark: f64| mark.log10());
                let (low, high) = (first.floor(), last.floor());
                let below = down.into_iter().rev().map(|mark| low + mark).find(|mark| *mark <= first + 1e-9);
                let above = down.into_iter().map(|mark| high + mark).find(|mark| *mark >= last - 1e-9);
                let (first, mut last) = (below.unwrap_or(low), above.unwrap_or(high + 1.0));
                if last - first < 0.1 {
                    last = first + 1.0;
                }
                Axis { scale, first: 10f64.powf(first), last: 10f64.powf(last) }
            }
        }
    }

    /// How far along the axis a figure lies, from 0 to 1.
    pub fn place(&self, figure: f64) -> f64 {
        let place = match self.scale {
            Scale::Linear => (figure - self.first) / (self.last - self.first),
            Scale::Log => {
                (figure.max(f64::MIN_POSITIVE).log10() - self.first.log10()) / (self.last / self.first).log10()
            }
        };
        place.clamp(0.0, 1.0)
    }

    /// Figures to be marked, a handful.
    pub fn marks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear => {
                let step = step(self.last - self.first);
                let count = ((self.last - self.first) / step).round() as usize;
                (0..=count).map(|index| self.first + step * index as f64).collect()
            }
            Scale::Log => {
                let powers = self.first.log10().floor() as i32..=self.last.log10().ceil() as i32;
                let many = (self.last / self.first).log10() > 3.0;
                let digits: &[f64] = if many { &[1.0] } else { &[1.0, 2.0, 5.0] };
                let marks = powers.flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powi(power)));
                marks.filter(|mark| (self.first * 0.999..=self.last * 1.001).contains(mark)).collect()
            }
        }
    }
}

/// A round distance between marks, so that there are about five.
fn step(range: f64) -> f64 {
    let rough = range / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let digit = [1.0, 2.0, 5.0, 10.0].into_iter().find(|digit| digit * power >= rough * 0.999).unwrap_or(10.0);
    digit * power
}

/// A mark's text: short, with k, M and G for thousands.
pub fn short(figure: f64) -> String {
    let (scaled, unit) = match figure.abs() {
        size if size >= 1e9 => (figure / 1e9, " G"),
        size if size >= 1e6 => (figure / 1e6, " M"),
        size if size >= 1e3 => (figure / 1e3, " k"),
        _ => (figure, ""),
    };
    let text = format!("{scaled:.3}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_axes_begin_at_zero_and_have_round_marks() {
        let axis = Axis::around([130.0, 480.0], Scale::Linear);
        assert_eq!(axis.marks(), [0.0, 100.0, 200.0, 300.0, 400.0, 500.0]);
        assert_eq!((axis.place(0.0), axis.place(250.0), axis.place(500.0)), (0.0, 0.5, 1.0));
        assert!(Axis::around([-30.0, 10.0], Scale::Linear).marks().first().is_some_and(|first| *first <= -30.0));
        assert_eq!(Axis::around([], Scale::Linear).marks().len(), 6);
        assert_eq!(Axis::around([0.0, 0.0], Scale::Linear).place(0.0), 0.0);
    }

    #[test]
    fn axes_by_powers_of_ten_hold_their_figures() {
        let axis = Axis::around([64.0, 4_194_304.0], Scale::Log);
        assert!(axis.place(64.0) >= 0.0 && axis.place(4_194_304.0) <= 1.0);
        assert_eq!(axis.marks(), [100.0, 1e3, 1e4, 1e5, 1e6]);
        let near = Axis::around([10.0, 40.0], Scale::Log);
        assert_eq!(near.marks().len(), 3);
        assert!((near.place(10.0)).abs() < 1e-9 && near.place(40.0) < 1.0);
        assert!(Axis::around([7.0], Scale::Log).place(7.0).is_finite());
        assert!(Axis::around([0.0, 5.0], Scale::Log).place(0.0).abs() < 1e-9);
    }

    #[test]
    fn marks_are_short() {
        assert_eq!([0.0, 0.25, 5.0, 1_500.0, 2e6, 3e9].map(short), ["0", "0.25", "5", "1.5 k", "2 M", "3 G"]);
    }
}
