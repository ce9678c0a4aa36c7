import type { Session } from '../session.ts'

export interface PageRequest {
  readonly session: Session
  /** That of this `svc`. */
  readonly version: string
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  readonly body: Readonly<Record<string, unknown>>
  /** Aborts when the page no longer waits for what it reads. */
  readonly signal?: AbortSignal
}

export type PageRoute = (request: PageRequest) => Promise<unknown>
