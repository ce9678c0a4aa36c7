/** Prometheus' text exposition format, version 0.0.4. */

/** One metric with its samples. Names end in their unit; those of counters in `_total`. */
export interface Metric {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'summary'
  readonly help: string
  readonly samples: readonly Sample[]
}

/** A value, and the labels that tell it from others of its metric. */
export interface Sample {
  readonly labels?: Readonly<Record<string, string>>
  readonly value: number
  /** Of a summary: `_sum` and `_count`. */
  readonly suffix?: '_sum' | '_count'
}

/** Metrics as text. One without samples is left out. */
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
