import { randomUUID } from 'node:crypto'
import { Gate } from '@svc/internal-concurrency'
import type { WorkOptions } from '@svc/internal-models'
import { LibraryError } from '@svc/internal-state'
import type { RunningWork, Work, WorkProgress } from '../operations/work.ts'

/** How many of a kind run at once; others wait in order. */
const WIDTHS = { import: 2, ensure: 8, verify: 1, collect: 1 } as const

/** The operations of one library, until it is closed. */
export class Operations implements RunningWork {
  readonly #gates = new Map(Object.entries(WIDTHS).map(([kind, width]) => [kind, new Gate(width)]))
  readonly #open = new Map<string, { readonly result: Promise<unknown>; manifest: string | undefined }>()
  readonly #closed = new AbortController()

  get openCount(): number {
    return this.#open.size
  }

  openOf(manifest: string): { readonly id: string }[] {
    return [...this.#open].filter(([, open]) => open.manifest === manifest).map(([id]) => ({ id }))
  }

  /** Resolves when one is over, or is none. @throws its error */
  async over(id: string): Promise<void> {
    await this.#open.get(id)?.result
  }

  /** @throws the signal's reason; LibraryError `E_CLOSED` */
  async run<T>(
    kind: keyof typeof WIDTHS,
    { signal, onProgress, manifest }: WorkOptions & { readonly manifest?: string },
    work: (work: Work) => Promise<T>
  ): Promise<T> {
    this.#closed.signal.throwIfAborted()
    const id = randomUUID()
    const both = AbortSignal.any([this.#closed.signal, ...(signal === undefined ? [] : [signal])])
    const report = ({ manifest, ...progress }: WorkProgress): void => {
      if (manifest !== undefined) this.#open.get(id)!.manifest = manifest
      onProgress?.(progress)
    }
    const result = this.#gates.get(kind)!.run(both, () => {
      both.throwIfAborted()
      return work({ id, signal: both, report })
    })
    this.#open.set(id, { result, manifest })
    try {
      return await result
    } catch (error) {
      // whatever the interrupted code threw
      both.throwIfAborted()
      throw error
    } finally {
      this.#open.delete(id)
    }
  }

  /** Ends all, and resolves when the last one has released its files. */
  async close(): Promise<void> {
    this.#closed.abort(new LibraryError('E_CLOSED', 'the library is closed'))
    await Promise.allSettled([...this.#open.values()].map(({ result }) => result))
  }
}
