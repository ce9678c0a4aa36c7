import type { Samples } from '../store.ts'

const WIDTH = 178
const HEIGHT = 36

/** A rate over time, the newest at the right. Two share one scale. */
export function Line({ label, series }: { readonly label: string; readonly series: readonly Samples[] }) {
  const top = Math.max(1, ...series.flat())
  const points = (samples: Samples): readonly string[] =>
    samples.map(
      (sample, i) =>
        `${WIDTH - (samples.length - 1 - i) * 2} ${(HEIGHT - 1 - (sample / top) * (HEIGHT - 3)).toFixed(1)}`
    )
  return (
    <svg class="line" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      {series.map(
        (samples, i) =>
          samples.length > 0 && (
            <g key={i === 0 ? 'first' : 'second'} class={i === 0 ? 'first' : 'second'}>
              <path
                class="area"
                d={`M${WIDTH - (samples.length - 1) * 2} ${HEIGHT}L${points(samples).join(' ')} ${WIDTH} ${HEIGHT}z`}
              />
              <path d={`M${points(samples).join(' ')}`} />
            </g>
          )
      )}
    </svg>
  )
}
