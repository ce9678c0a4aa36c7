import type { Samples } from '../store.ts'

const WIDTH = 178
const HEIGHT = 36
/** Before there are so many samples, the line begins at the left all the same. */
const FEWEST = 12

/** A rate over time, the newest at the right. Two share one scale. */
export function Line({ label, series }: { readonly label: string; readonly series: readonly Samples[] }) {
  const top = Math.max(1, ...series.flat())
  const step = WIDTH / (Math.max(FEWEST, ...series.map(({ length }) => length)) - 1)
  const points = (samples: Samples): readonly string[] =>
    samples.map((sample, i) => `${(i * step).toFixed(1)} ${(HEIGHT - 1 - (sample / top) * (HEIGHT - 3)).toFixed(1)}`)
  return (
    <svg class="line" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <path class="ground" d={`M0 ${HEIGHT - 0.5}H${WIDTH}`} />
      {series.map(
        (samples, i) =>
          samples.length > 1 && (
            <g key={i === 0 ? 'first' : 'second'} class={i === 0 ? 'first' : 'second'}>
              <path
                class="area"
                d={`M0 ${HEIGHT}L${points(samples).join(' ')} ${((samples.length - 1) * step).toFixed(1)} ${HEIGHT}z`}
              />
              <path d={`M${points(samples).join(' ')}`} />
            </g>
          )
      )}
    </svg>
  )
}
