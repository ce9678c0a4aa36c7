import { Gate } from '@svc/internal-concurrency'
import type { Sha256Digest } from '@svc/ref'
import { LRUCache } from 'lru-cache'
import { hashFile } from './file-hash.ts'
import type { ServedFile } from './served-files.ts'

/** The names are short: this many take some ten MB. */
const MAX_NAMES = 100_000
/** More would only share the same CPU. */
const HASHED_AT_ONCE = 2

/** Git's names (SHA-1) of small files. Each file is read once, even for concurrent requests. */
export class GitNames {
  readonly #hashing = new Gate(HASHED_AT_ONCE)
  readonly #known = new LRUCache<Sha256Digest, string, ServedFile>({
    // `max` would allocate memory for all of them
    maxSize: MAX_NAMES,
    sizeCalculation: () => 1,
    // a waiting caller gets its name even if the cache evicts it meanwhile
    ignoreFetchAbort: true,
    fetchMethod: (_digest, _stale, { context }) => this.#hashing.run(undefined, () => nameOf(context))
  })

  /** @throws errors of the file system; `ENOENT` if the file is gone */
  of(file: ServedFile): Promise<string> {
    return this.#known.forceFetch(file.digest, { context: file })
  }
}

const nameOf = async ({ sizeBytes, path }: ServedFile): Promise<string> =>
  (await hashFile(path, 'sha1', `blob ${sizeBytes}\0`)).toString('hex')
