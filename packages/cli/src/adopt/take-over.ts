import type { Stats } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { type AdoptBody, MAX_ADOPT_BODY_BYTES } from '@svc/client/protocol'
import type { FoundFile } from '@svc/view'
import { CliError } from '../errors.ts'
import { EXIT } from '../exit-codes.ts'
import { follow } from '../follow.ts'
import type { Session } from '../session.ts'
import type { AdoptableModel } from './found-models.ts'

/** The result of importing a model. */
export interface Outcome {
  readonly model: AdoptableModel
  /** `ns/name:quant` of each imported member. */
  readonly refs: readonly string[]
  /** Files whose bytes do not match the cache's digest; they were left out. */
  readonly damaged: readonly FoundFile[]
  /** The files' metadata from before the import, by path. */
  readonly before: ReadonlyMap<string, Stats>
  readonly error?: CliError
}

/**
 * Imports a model of another tool. Damaged files are left out one by one, as long as a model remains.
 * @throws CliError on Ctrl-C, ClientError when the daemon is unreachable
 */
export async function takeOver(
  session: Session,
  model: AdoptableModel,
  options: { readonly keepNames?: boolean; readonly private?: boolean }
): Promise<Outcome> {
  const { found, as } = model
  const before = new Map<string, Stats>()
  for (const { path } of found.files) {
    const stats = await lstat(path).catch(() => undefined)
    if (stats !== undefined) before.set(path, stats)
  }
  const damaged: FoundFile[] = []
  // with --json the whole result is one document
  const quiet = session.json ? { ...session, json: false, quiet: true } : session
  for (;;) {
    const files = found.files.filter((file) => !damaged.includes(file))
    try {
      const job = await follow(quiet, await session.client.adopt(bodyOf(model, files, options)))
      return { model, refs: (job.result?.quants ?? []).map((quant) => `${as}:${quant}`), damaged, before }
    } catch (error) {
      if (!(error instanceof CliError) || error.exitCode === EXIT.interrupted) throw error
      const [name, ...others] = error.candidates
      const file = others.length === 0 ? files.find((each) => each.name === name) : undefined
      if (file === undefined) return { model, refs: [], damaged, before, error }
      damaged.push(file)
      if (files.length === 1) return { model, refs: [], damaged, before }
    }
  }
}

function bodyOf(
  { found, as }: AdoptableModel,
  files: readonly FoundFile[],
  options: { readonly keepNames?: boolean; readonly private?: boolean }
): AdoptBody {
  const { repo, revision } = found.hub ?? {}
  const body: AdoptBody = {
    as,
    files: files.map(({ name, path, expectedSha256, expectedGitSha1 }) => ({
      name,
      path,
      ...(expectedSha256 !== undefined && { sha256: expectedSha256 }),
      ...(expectedGitSha1 !== undefined && { gitSha1: expectedGitSha1 })
    })),
    ...(repo !== undefined && revision !== undefined && { hub: { repo, revision } }),
    ...(options.keepNames !== true && { names: 'normalized' as const }),
    ...(options.private === true && { private: true })
  }
  if (Buffer.byteLength(JSON.stringify(body)) > MAX_ADOPT_BODY_BYTES)
    throw new CliError(EXIT.failed, `it has ${files.length} files, too many for one request; use svc import local`)
  return body
}
