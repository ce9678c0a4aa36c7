import { ClassifyError, globTest } from '@svc/classify'
import type { ImportLocalBody } from '@svc/client/protocol'
import { DaemonError } from '../errors.ts'

/** What the caller of an import wants of it (spec add.1, add.6, add.10), checked. */
export interface ImportWishes {
  readonly normalizedNames: boolean
  /** As they were written; compared in lower case. */
  readonly quants?: readonly string[] | undefined
  /** Of the names that recognition sees. */
  readonly files?: ((name: string) => boolean) | undefined
  readonly private: boolean
}

/** Everything under its own names: what a request without additions asks for. */
export const EVERYTHING: ImportWishes = { normalizedNames: false, private: false }

/**
 * The wishes of a request body that has passed its schema. Normalized names are not those that the publisher shows, so globs are
 * compared with them in any case. @throws DaemonError `E_BAD_REQUEST` naming the field
 */
export function wishesOf(
  { names, quants, files, ...body }: Pick<ImportLocalBody, 'names' | 'quants' | 'files' | 'private'>,
  privateByDefault = false
): ImportWishes {
  const normalizedNames = names === 'normalized'
  if (quants?.length === 0) throw new DaemonError('E_BAD_REQUEST', 'the field "quants" names no quant')
  return {
    normalizedNames,
    quants,
    files: files && testOf(files, normalizedNames),
    private: body.private ?? privateByDefault
  }
}

function testOf(files: readonly string[], anyCase: boolean): (name: string) => boolean {
  if (files.length === 0) throw new DaemonError('E_BAD_REQUEST', 'the field "files" names no pattern')
  try {
    return globTest(files, anyCase)
  } catch (cause) {
    if (!(cause instanceof ClassifyError)) throw cause
    throw new DaemonError('E_BAD_REQUEST', `the field "files": ${cause.message}`, { cause })
  }
}
