import type { Transferable } from 'node:worker_threads'

/** One operation of a thread: what goes in, what comes out, and what it reports on the way. */
export interface Call {
  readonly request: unknown
  readonly response: unknown
  readonly progress?: unknown
}

/** The operations of a thread by name; an interface satisfies it as `Calls<ThatInterface>`. */
export type Calls<Of> = { readonly [Op in keyof Of]: Call }

/** What a call may bring along. */
export interface CallOptions<Progress> {
  /** Buffers and ports that are given away instead of copied. */
  readonly transfer?: readonly Transferable[]
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** Fires `signal` of the handler. The call settles when the handler does, so that nothing is used behind the caller's back. */
  readonly signal?: AbortSignal | undefined
}

/** What a call reports on the way. */
export type ProgressOf<C extends Call> = C extends { readonly progress?: infer Progress } ? Progress : never

/** To the thread. */
export type Request =
  | { readonly id: number; readonly op: PropertyKey; readonly request: unknown; readonly abortable: boolean }
  | { readonly abort: number }

/** From the thread. */
export type Reply =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: unknown }
  | { readonly id: number; readonly progress: unknown }
  | { readonly event: unknown }
