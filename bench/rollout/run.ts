/** The results of one scenario. */
export interface Run {
  readonly name: string
  readonly program: 'svc' | 'libtorrent' | 'simulation'
  readonly receivers: number
  /** Download time of each receiver, from its own start. */
  readonly seconds: readonly number[]
  /** F/C in seconds: the time in which one link carries the file once. */
  readonly unit: number
  readonly pieces: number
  /** Bytes uploaded by the origin, in multiples of the model's size; undefined if not counted. */
  readonly origin: number | undefined
  /** Bytes into and out of each zone but the first, in multiples of the model's size, network headers included. */
  readonly crossing: readonly (readonly [inCopies: number, outCopies: number])[]
  /** Absent in the simulation. */
  readonly processors?: ProcessorUse
}

/** Whether the processors or the links were the limit. */
export interface ProcessorUse {
  /** Of all cores, the share that was busy, with whatever ran on the machine. */
  readonly busy: number
  /** Of the time of the programs under measurement, the share in which their main threads were ready and had no core. */
  readonly waiting: number
  /** Of all cores, the share that these programs took. */
  readonly own: number
}

/** The nearest-rank quantile: of `n` sorted values the one at ⌈share · n⌉. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!
}

/** In multiples of F/C: no way of sending is faster. */
export const boundOf = ({ receivers, pieces }: Pick<Run, 'receivers' | 'pieces'>): number =>
  1 + Math.floor(Math.log2(receivers)) / pieces

/** What a rollout has to keep: times in multiples of F/C, bytes in copies of the model. */
const BARS = { p99: 1.5, max: 2, crowdOrigin: 1.5, spreadOrigin: 1.1, zone: 1.2 }

function missed({ name, seconds, unit, origin, crossing }: Run): readonly string[] {
  const originBar = name.includes('spread out') ? BARS.spreadOrigin : BARS.crowdOrigin
  return [
    ...(quantile(seconds, 0.99) / unit > BARS.p99 ? ['p99'] : []),
    ...(quantile(seconds, 1) / unit > BARS.max ? ['max'] : []),
    ...((origin ?? 0) > originBar ? ['origin'] : []),
    ...(crossing.some(([into]) => into > BARS.zone) ? ['zone'] : [])
  ]
}

/** Formats a Markdown table, one row per run, as docs/fleet.md has it. Times are in multiples of F/C. */
export function formatRuns(runs: readonly Run[]): string {
  const percent = (share: number | undefined): string => (share === undefined ? '' : `${(share * 100).toFixed(0)} %`)
  const line = (run: Run): string => {
    const { name, program, receivers, seconds, unit, origin, crossing, processors } = run
    const times = [0.5, 0.99, 1].map((share) => (quantile(seconds, share) / unit).toFixed(2))
    const zones = crossing.map(([into]) => into.toFixed(2)).join(', ')
    const load = [processors?.busy, processors?.waiting].map(percent)
    const bars = missed(run)
    const verdict = bars.length === 0 ? 'met' : `${bars.join(', ')} missed`
    const cells = [boundOf(run).toFixed(2), ...times, origin?.toFixed(2) ?? '', zones, ...load, verdict]
    return `| ${name} | ${program} | ${receivers} | ${cells.join(' | ')} |`
  }
  return [
    '| Scenario | Program | N | bound | p50 | p99 | max | origin | into a zone | machine busy | waited for a core | bars |',
    '| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |',
    ...runs.map(line)
  ].join('\n')
}
