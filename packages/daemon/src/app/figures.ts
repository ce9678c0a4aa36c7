import { Lazy } from '@svc/internal-concurrency'
import type { Metrics, MetricsDeps } from '../metrics/metrics.ts'

/** The daemon's metrics as text. The collecting code is loaded, and starts to measure, at the first request. */
export class Figures {
  readonly #deps: MetricsDeps
  readonly #loaded = new Lazy<{ readonly metrics: Metrics; readonly text: () => Promise<string> }>(() => this.#load())
  #isClosed = false

  constructor(deps: MetricsDeps) {
    this.#deps = deps
  }

  readonly text = async (): Promise<string> => (await this.#loaded.get()).text()

  close(): void {
    this.#isClosed = true
    void this.#loaded.made?.then(({ metrics }) => metrics.close())
  }

  async #load() {
    const [{ Metrics }, { formatMetrics }] = await Promise.all([
      import('../metrics/metrics.ts'),
      import('@svc/internal-metrics')
    ])
    const metrics = new Metrics(this.#deps)
    if (this.#isClosed) metrics.close()
    return { metrics, text: async () => formatMetrics(await metrics.collect()) }
  }
}
