import type { DiskBlobStore } from '@svc/cas'
import type { AdoptBody, ImportLocalBody, Job } from '@svc/client/protocol'
import type { SwarmConfig } from '../../config/config.ts'
import type { Importer } from '../../import/importer.ts'
import { importTarget } from '../../import/target.ts'
import { wishesOf } from '../../import/wishes.ts'
import { adoptedSource } from './adopted.ts'
import { localSource } from './source.ts'

/** What imports from disk need of the daemon. */
export interface LocalParts {
  readonly importer: Importer
  readonly store: Pick<DiskBlobStore, 'stat'>
  readonly config: { readonly swarm: Pick<SwarmConfig, 'seedLocal'> }
}

/** Imports from the disks of this machine. */
export class LocalPart {
  readonly #parts: LocalParts

  constructor(parts: LocalParts) {
    this.#parts = parts
  }

  /**
   * Walks the paths, and accepts the job. Nothing is read before that, but for headers of safetensors where a quant is chosen.
   * @throws DaemonError `E_BAD_REQUEST`, `E_SOURCE_NOT_REGULAR`, `E_NO_MEMBER`
   */
  async importLocal({ paths, as, ...more }: ImportLocalBody): Promise<Job> {
    const { importer, config } = this.#parts
    const repo = importTarget(as, 'as')
    const wishes = wishesOf(more, config.swarm.seedLocal === false)
    return importer.start({ kind: 'import-local', ref: as, repo, source: await localSource(paths), wishes })
  }

  /**
   * Looks at the files, and accepts the job. Blobs that are here already by the digests given are not read again; other bytes than
   * promised end the job with `E_NOT_IMPORTABLE` and the file's name as the only candidate.
   * @throws DaemonError `E_BAD_REQUEST`, `E_SOURCE_NOT_REGULAR`
   */
  async adopt({ files, as, hub, ...more }: AdoptBody): Promise<Job> {
    const { importer, store, config } = this.#parts
    const repo = importTarget(as, 'as')
    const wishes = wishesOf(more, config.swarm.seedLocal === false)
    return importer.start({
      kind: 'import-local',
      ref: as,
      repo,
      source: await adoptedSource(files, hub, store),
      wishes
    })
  }
}
