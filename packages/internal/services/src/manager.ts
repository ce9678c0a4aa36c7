import { spawnSync } from 'node:child_process'
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { errnoOf, ifAbsent } from '@svc/internal-errors'
import { makeFoldersSync } from '@svc/internal-files'
import { ServiceError } from './errors.ts'

export const MANAGERS = ['systemd', 'launchd'] as const
export type ManagerName = (typeof MANAGERS)[number]

interface ServiceState {
  readonly installed: boolean
  readonly enabled: boolean
  readonly active: boolean
  readonly detail: string
}

/** One step of an installation: a file to write or remove, or a command to run. */
export type ServiceStep =
  | { readonly write: string; readonly content: string }
  | { readonly remove: string }
  | {
      readonly run: readonly string[]
      readonly mayFail?: boolean
      /** What a failure means; default: nothing to do. */
      readonly otherwise?: string
    }

export interface ServiceManager {
  readonly name: ManagerName
  /** Checks that the manager is available to this user. @throws ServiceError */
  check(): void
  readonly install: readonly ServiceStep[]
  readonly remove: readonly ServiceStep[]
  /** Starts or stops the installed service, until the next login. */
  readonly start: readonly ServiceStep[]
  readonly stop: readonly ServiceStep[]
  state(): ServiceState
  /** Remarks for the user once it runs. */
  readonly remarks: readonly string[]
}

export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program of the manager and waits for it. `code` is 127 when it is absent. */
export function runProgram([program, ...args]: readonly string[], env: NodeJS.ProcessEnv): Ran {
  const { status, stdout, stderr, error } = spawnSync(program!, args, { encoding: 'utf8', env, timeout: 60_000 })
  if (errnoOf(error) === 'ENOENT') return { code: 127, stdout: '', stderr: `${program} is not installed` }
  return { code: status ?? 1, stdout: stdout ?? '', stderr: (stderr || error?.message) ?? '' }
}

/** Returns `wrote …`, `removed …` or `ran …`. A file with the same content is left alone. @throws ServiceError */
export function takeStep(step: ServiceStep, env: NodeJS.ProcessEnv): string {
  if ('write' in step) {
    if (contentOf(step.write) === step.content) return `unchanged ${step.write}`
    makeFoldersSync(dirname(step.write))
    // the manager must never read a half-written file.
    const temporary = `${step.write}.new`
    writeFileSync(temporary, step.content, { mode: 0o644 })
    renameSync(temporary, step.write)
    return `wrote ${step.write}`
  }
  if ('remove' in step) {
    if (contentOf(step.remove) === undefined) return `absent ${step.remove}`
    rmSync(step.remove)
    return `removed ${step.remove}`
  }
  const { code, stderr } = runProgram(step.run, env)
  const line = step.run.join(' ')
  if (code === 0) return `ran ${line}`
  if (step.mayFail === true) return `ran ${line} (it said ${code}: ${step.otherwise ?? 'nothing to do'})`
  throw new ServiceError('E_FAILED', `${line} failed: ${stderr.trim().split('\n')[0] || `exit code ${code}`}`)
}

/** Describes what {@link takeStep} would do. */
export function describeStep(step: ServiceStep): string {
  if ('write' in step) return `would write ${step.write}`
  return 'remove' in step ? `would remove ${step.remove}` : `would run ${step.run.join(' ')}`
}

export function contentOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    return ifAbsent(error)
  }
}
