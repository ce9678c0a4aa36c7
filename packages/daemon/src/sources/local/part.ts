import type { ImportLocalBody, Job } from '@svc/client/protocol'
import type { SwarmConfig } from '../../config/config.ts'
import type { Importer } from '../../import/importer.ts'
import { importTarget } from '../../import/target.ts'
import { wishesOf } from '../../import/wishes.ts'
import { localSource } from './source.ts'

/** What imports from disk need of the daemon. */
export interface LocalParts {
  readonly importer: Importer
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
}
