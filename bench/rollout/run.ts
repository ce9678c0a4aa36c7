/** What one scenario measured. */
export interface Run {
  readonly name: string
  readonly program: 'svc' | 'libtorrent' | 'simulation'
  readonly receivers: number
  /** Per receiver, from its own begin. */
  readonly seconds: readonly number[]
  /** F/C in seconds. */
  readonly unit: number
  /** Bytes that left the origin, in copies of the model; undefined: not counted. */
  readonly origin: number | undefined
  /** Bytes into and out of each further zone, in copies of the model, headers of the network included. */
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

/** The value below which so much of a list lies: of `n` values the one at ⌈share · n⌉. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!
}

/** A table in Markdown; times in multiples of F/C. */
export function formatRuns(runs: readonly Run[]): string {
  const percent = (share: number | undefined): string => (share === undefined ? '' : `${(share * 100).toFixed(0)} %`)
  const line = ({ name, program, receivers, seconds, unit, origin, crossing, processors }: Run): string => {
    const times = [0.5, 0.99, 1].map((share) => (quantile(seconds, share) / unit).toFixed(2))
    const zones = crossing.map(([into, out]) => `${into.toFixed(2)} in, ${out.toFixed(2)} out`).join('; ')
    const load = [processors?.own, processors?.busy, processors?.waiting].map(percent).join(' | ')
    return `| ${name} | ${program} | ${receivers} | ${times.join(' | ')} | ${origin?.toFixed(2) ?? ''} | ${zones} | ${load} |`
  }
  return [
    '| scenario | program | N | p50 | p99 | max | origin | zone | own CPU | all CPU | waited for CPU |',
    '| --- | --- | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: |',
    ...runs.map(line)
  ].join('\n')
}
