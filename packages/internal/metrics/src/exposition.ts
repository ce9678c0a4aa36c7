/** Prometheus' text exposition format, version 0.0.4. */

/** One metric with its samples. Names end in their unit; those of counters in `_total`. */
export interface Metric {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'summary'
  readonly help: string
  readonly samples: readonly Sample[]
}

/** A value, with the labels that identify it within its metric. */
export interface Sample {
  readonly labels?: Readonly<Record<string, string>>
  readonly value: number
  /** For a summary: `_sum` or `_count`. */
  readonly suffix?: '_sum' | '_count'
}

export const gauge = (name: string, help: string, value: number | readonly Sample[]): Metric =>
  metricOf('gauge', name, help, value)
export const counter = (name: string, help: string, value: number | readonly Sample[]): Metric =>
  metricOf('counter', name, help, value)

const metricOf = (type: Metric['type'], name: string, help: string, value: number | readonly Sample[]): Metric => ({
  name,
  type,
  help,
  samples: typeof value === 'number' ? [{ value }] : value
})

/** Formats metrics as text. Metrics without samples are omitted. */
export function formatMetrics(metrics: readonly Metric[]): string {
  const lines: string[] = []
  for (const { name, type, help, samples } of metrics) {
    if (samples.length === 0) continue
    lines.push(`# HELP ${name} ${escaped(help).replaceAll('\\"', '"')}`, `# TYPE ${name} ${type}`)
    for (const { labels = {}, value, suffix = '' } of samples) {
      const pairs = Object.entries(labels).map(([key, text]) => `${key}="${escaped(text)}"`)
      lines.push(`${name}${suffix}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}`)
    }
  }
  return `${lines.join('\n')}\n`
}

const escaped = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
