import { hash } from 'node:crypto'
import { type ArtifactState, companionsUnder } from '@svc/library/parts'

/** Artifacts of local names, as the hub would have them: in a repository of that name, whose commit tells its content. */
export class LocalRepos {
  /** Whoever compares states finds one that has not changed the same. */
  readonly #known = new WeakMap<ArtifactState, ArtifactState>()

  of(name: string, states: readonly ArtifactState[]): readonly ArtifactState[] {
    const content = states.map((state) => `${state.manifestDigest} ${companionsUnder(state, name)}\n`).sort()
    const revision = hash('sha1', content.join(''))
    return states.map((state) => {
      const known = this.#known.get(state)
      if (known?.source.repo === name && known.source.revision === revision) return known
      const { names, companions } = state.source
      const beside = companionsUnder(state, name) ?? companions
      const source = {
        kind: 'hf' as const,
        repo: name,
        revision,
        branch: 'main',
        branchAt: state.importedAt ?? new Date(0).toISOString(),
        ...(names !== undefined && { names }),
        ...(beside !== undefined && { companions: beside })
      }
      const shown = { ...state, source }
      this.#known.set(state, shown)
      return shown
    })
  }
}
