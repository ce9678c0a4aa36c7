import { type AdoptBody, MAX_ADOPT_BODY_BYTES } from '@svc/client/protocol'
import type { FoundFile, FoundModel } from '@svc/view'
import { CliError } from '../errors.ts'

export interface AdoptFlags {
  readonly keepNames?: boolean
  readonly private?: boolean
  readonly force?: boolean
}

/** @throws CliError for a model of too many files */
export function adoptBody(found: FoundModel, as: string, files: readonly FoundFile[], options: AdoptFlags): AdoptBody {
  const { tool, hub } = found
  const body: AdoptBody = {
    as,
    files: files.map(({ name, path, expectedSha256, expectedGitSha1 }) => ({
      name,
      path,
      ...(expectedSha256 !== undefined && { sha256: expectedSha256 }),
      ...(expectedGitSha1 !== undefined && { gitSha1: expectedGitSha1 })
    })),
    ...(hub !== undefined && { hub }),
    ...(tool === 'dir' && { own: true }),
    ...(options.keepNames !== true && { names: 'normalized' as const }),
    ...(options.private !== undefined && { private: options.private }),
    ...(options.force !== true && { malformed: 'refuse' as const })
  }
  if (Buffer.byteLength(JSON.stringify(body)) > MAX_ADOPT_BODY_BYTES)
    throw new CliError('failed', `it has ${files.length} files, too many for one request; use svc import local`)
  return body
}
