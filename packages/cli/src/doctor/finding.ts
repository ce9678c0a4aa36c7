import type { DamagedRecord, Status, ViewEntry } from '@svc/client'
import type { Clock } from '@svc/internal-clock'
import { errnoOf } from '@svc/internal-errors'
import type { StoredMember } from '../models/models-here.ts'

/** `bad` prevents the store from working; `warn` will cause trouble at some time; `note` is for information. */
export type Level = 'ok' | 'note' | 'warn' | 'bad'

export interface Finding {
  /** The name of the check that found it. */
  readonly check: string
  readonly level: Level
  readonly text: string
  /** What to do. Present for `warn` and `bad`. */
  readonly advice?: string
  /** Something in the store is damaged, not just its surroundings; the exit code tells the two apart. */
  readonly isDamage?: true
}

export interface DoctorInput {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly platform: NodeJS.Platform
  readonly clock: Clock
  readonly uid: number
  readonly socketPath: string
  /** That of this `svc`. */
  readonly version: string
  /** The daemon's answer; undefined if there was none. */
  readonly status: Status | undefined
  /** Records that cannot be read, as far as the daemon answered. */
  readonly damaged: readonly DamagedRecord[]
  /** All models here; empty without an answer. */
  readonly models: readonly StoredMember[]
  readonly views: readonly ViewEntry[]
  /** Why there was no answer. */
  readonly silence: string | undefined
}

/** What a check finds; the report adds the check's name. */
export type Found = Omit<Finding, 'check'>

export type Check = (subject: DoctorInput) => Promise<readonly Found[]> | readonly Found[]

export const say = {
  ok: (text: string): Found => ({ level: 'ok', text }),
  note: (text: string, advice?: string): Found => ({ level: 'note', text, ...(advice && { advice }) }),
  warn: (text: string, advice: string): Found => ({ level: 'warn', text, advice }),
  bad: (text: string, advice: string): Found => ({ level: 'bad', text, advice })
}

export const codeOf = (error: unknown): string => errnoOf(error) ?? String(error)
