import { ClientError } from '@svc/client'
import { ServiceError } from '@svc/internal-services'
import type { Output } from '@svc/internal-terminal'
import { RefError } from '@svc/ref'
import { CliError } from './errors.ts'
import { type Exit, exitOf } from './exit-codes.ts'

export interface Report {
  readonly exit: Exit
  readonly code: string
  readonly message: string
  readonly candidates: readonly string[]
  readonly hint?: string | undefined
}

const HINTS: Readonly<Record<string, string>> = {
  E_UNKNOWN_REF: 'svc ls shows what is here',
  E_SOURCE_FORBIDDEN:
    'svc login hf stores a token of the hub, which the daemon reads at the next import; a token in the environment of the daemon (SVC_HF_TOKEN, HF_TOKEN) takes precedence',
  E_NOT_ANCHORED: "add --trust-catalog to trust the catalog's own record instead",
  E_VERIFY_FAILED: 'svc pull REF fetches what is missing again',
  E_CORRUPTION: 'run svc verify all, which moves corrupt blobs aside, then import or pull again'
}

/** Explains an error to the user; never prints a stack. */
export function reportOf(error: unknown): Report {
  if (error instanceof CliError) {
    const { exit, code, message, candidates } = error
    return { exit, code, message, candidates, hint: error.hint ?? HINTS[code] }
  }
  if (error instanceof ServiceError) {
    const { code, message, details } = error
    return { exit: code === 'E_USAGE' ? 'usage' : 'failed', code, message, candidates: [], hint: details.hint }
  }
  if (error instanceof ClientError) {
    const { code, message, candidates } = error
    // not found at the hub or the catalog, rather than here
    const elsewhere = code === 'E_UNKNOWN_REF' && error.status !== 404
    return { exit: exitOf(code), code, message, candidates, hint: elsewhere ? undefined : HINTS[code] }
  }
  if (error instanceof RefError) {
    // users type the short form
    const isAboutScheme = error.reason === 'scheme' || error.reason === 'authority'
    const message = isAboutScheme ? error.message : error.message.replaceAll('svc:///', '')
    return { exit: 'usage', code: error.code, message, candidates: [] }
  }
  const message = error instanceof Error ? error.message : String(error)
  return { exit: 'failed', code: 'E_FAILED', message, candidates: [] }
}

const MAX_SHOWN = 20

/** Writes `svc: <message>`, the candidates, a hint; with --json the error envelope on one line. */
export function tellReport(report: Report, json: boolean, stderr: Output): void {
  if (json) {
    const { code, message, candidates } = report
    return stderr.document({ error: { code, message, ...(candidates.length > 0 && { candidates }) } })
  }
  const lines = [`svc: ${report.message}`]
  // omit candidates that the message already lists
  const candidates = report.candidates.every((text) => report.message.includes(text)) ? [] : report.candidates
  if (candidates.length > 0) lines.push('  known:', ...candidates.slice(0, MAX_SHOWN).map((text) => `    ${text}`))
  if (candidates.length > MAX_SHOWN) lines.push(`    … and ${candidates.length - MAX_SHOWN} more`)
  if (report.hint !== undefined) lines.push(`  hint: ${report.hint}`)
  for (const line of lines) stderr.prose(line)
}
