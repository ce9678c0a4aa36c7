import type { Metrics, MetricsDeps } from '../metrics/metrics.ts'

/** The daemon's metrics as text. The collecting code is loaded, and starts to measure, at the first request. */
export class Figures {
  readonly #deps: MetricsDeps
  #loading: Promise<{ readonly metrics: Metrics; readonly text: () => Promise<string> }> | undefined
  #isClosed = false

  constructor(deps: MetricsDeps) {
    this.#deps = deps
  }

  /** Prometheus' text format. */
  readonly text = async (): Promise<string> => {
    this.#loading ??= this.#load()
    return (await this.#loading).text()
  }

  close(): void {
    this.#isClosed = true
    void this.#loading?.then(({ metrics }) => metrics.close())
  }

  async #load() {
    const [{ Metrics }, { formatMetrics }] = await Promise.all([
      import('../metrics/metrics.ts'),
      import('../metrics/exposition.ts')
    ])
    const metrics = new Metrics(this.#deps)
    if (this.#isClosed) metrics.close()
    return { metrics, text: async () => formatMetrics(await metrics.collect()) }
  }
}
