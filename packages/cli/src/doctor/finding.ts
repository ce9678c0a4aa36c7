import type { Status } from '@svc/client'

/** `bad` is something that keeps the store from working; `warn` will hurt at some time; `note` is good to know. */
export type Level = 'ok' | 'note' | 'warn' | 'bad'

export interface Finding {
  /** Which check it comes from: one of the rows of docs/guide/service.md. */
  readonly check: string
  readonly level: Level
  readonly text: string
  /** What to do. There for `warn` and `bad`. */
  readonly advice?: string
}

/** What the checks look at. */
export interface Subject {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly platform: NodeJS.Platform
  readonly uid: number
  readonly socketPath: string
  /** Of this `svc`. */
  readonly version: string
  /** The daemon's answer; undefined where it gave none. */
  readonly status: Status | undefined
  /** Why it gave none. */
  readonly silence: string | undefined
}

export type Check = (subject: Subject) => Promise<readonly Finding[]> | readonly Finding[]

/** Findings of one check, made short. */
export function findingsOf(check: string) {
  return {
    ok: (text: string): Finding => ({ check, level: 'ok', text }),
    note: (text: string, advice?: string): Finding => ({ check, level: 'note', text, ...(advice && { advice }) }),
    warn: (text: string, advice: string): Finding => ({ check, level: 'warn', text, advice }),
    bad: (text: string, advice: string): Finding => ({ check, level: 'bad', text, advice })
  }
}

export const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? String(error)
