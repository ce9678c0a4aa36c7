import { SecretFile } from '@svc/internal-server'
import { ConfigError } from '../errors.ts'
import type { MirrorConfig } from './config.ts'

const S3_KEYS = '[mirror] s3_keys'

/** Reads the keys of the S3 mirror, and again when they have changed; undefined if clients need none. */
export function s3KeysOf({
  s3Keys
}: Pick<MirrorConfig, 's3Keys'>): (() => Promise<ReadonlyMap<string, string>>) | undefined {
  if (s3Keys === undefined) return undefined
  const file = new SecretFile(s3Keys, parseS3Keys, (message, cause) => new ConfigError(message, { cause }))
  return () => file.read(S3_KEYS)
}

/** A file of lines `ID:SECRET`; empty lines and comments (`#`) are skipped. @throws ConfigError that quotes nothing of the file */
function parseS3Keys(text: string): ReadonlyMap<string, string> {
  const keys = new Map<string, string>()
  for (const [i, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue
    const [, id, secret] = /^([\x21-\x2e\x30-\x39\x3b-\x7e]{1,128}):([\x21-\x7e]{8,256})[ \t]*$/.exec(line) ?? []
    if (id === undefined || keys.has(id))
      throw new ConfigError(
        `${S3_KEYS}: line ${i + 1} is not ID:SECRET with an ID of its own and 8 or more characters of secret`
      )
    keys.set(id, secret!)
  }
  if (keys.size === 0) throw new ConfigError(`${S3_KEYS}: the file has no key`)
  return keys
}
