import type { Transferable } from 'node:worker_threads'

/** One operation of a thread: its request, its response, and its progress reports. */
interface Call {
  readonly request: unknown
  readonly response: unknown
  readonly progress?: unknown
}

/** The operations of a thread by name; an interface `I` satisfies `Calls<I>`. */
export type Calls<Of> = { readonly [Op in keyof Of]: Call }

export interface ThreadCallOptions<Progress> {
  /** Buffers and ports that are transferred instead of copied. */
  readonly transfer?: readonly Transferable[]
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** The thread is up, and has begun with it. */
  readonly onBegun?: (() => void) | undefined
  /** Aborts the handler's `signal`. The call settles when the handler does, so that nothing is in use afterwards. */
  readonly signal?: AbortSignal | undefined
}

export type ProgressOf<C extends Call> = C extends { readonly progress?: infer Progress } ? Progress : never

/** Messages to the thread. */
export type Request =
  | {
      readonly id: number
      readonly op: PropertyKey
      readonly request: unknown
      readonly abortable: boolean
      /** Whether the caller wants to know when it begins. */
      readonly watched: boolean
    }
  | { readonly abort: number }

/** Messages from the thread. */
export type Reply =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: unknown }
  | { readonly id: number; readonly progress: unknown }
  | { readonly id: number; readonly begun: true }
