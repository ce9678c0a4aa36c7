import type { Samples } from '../store.ts'

const WIDTH = 180
const HEIGHT = 36

/** A rate over time as a line, the newest at the right. Two share one scale. */
export function Line({ label, series }: { readonly label: string; readonly series: readonly Samples[] }) {
  const top = Math.max(1, ...series.flat())
  const points = (samples: Samples): string =>
    samples
      .map((sample, i) => {
        const x = WIDTH - ((samples.length - 1 - i) * WIDTH) / 89
        return `${x.toFixed(1)},${(HEIGHT - 1 - (sample / top) * (HEIGHT - 2)).toFixed(1)}`
      })
      .join(' ')
  return (
    <svg class="line" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      {series.map((samples, i) => (
        <polyline key={i === 0 ? 'first' : 'second'} class={i === 0 ? 'first' : 'second'} points={points(samples)} />
      ))}
    </svg>
  )
}
