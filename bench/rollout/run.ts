/** The results of one scenario. */
export interface Run {
  readonly name: string
  readonly program: 'svc' | 'libtorrent' | 'simulation'
  readonly receivers: number
  /** Download time of each receiver, from its own start. */
  readonly seconds: readonly number[]
  /** F/C in seconds: the time in which one link carries the file once. */
  readonly unit: number
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

/** Formats a Markdown table, with times in multiples of F/C. */
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
