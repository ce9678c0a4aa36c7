// What a release was made from: an in-toto statement with SLSA's predicate. Whoever builds it signs it.
import { execFileSync } from 'node:child_process'

/** The commit at `root`, with the tag that names it. */
export interface Commit {
  readonly sha: string
  readonly tag?: string
  /** Files of the tree differ from it. */
  readonly isChanged: boolean
}

export function commitOf(root: string): Commit {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  const tags = git('tag', '--points-at', 'HEAD').split('\n').filter(Boolean)
  return {
    sha: git('rev-parse', 'HEAD'),
    ...(tags[0] !== undefined && { tag: tags[0] }),
    isChanged: git('status', '--porcelain') !== ''
  }
}

/** @param digests hex SHA-256 of each file by name @param repository where the source is */
export function statementOf(
  digests: ReadonlyMap<string, string>,
  { sha, tag, isChanged }: Commit,
  repository: string
): Buffer {
  const statement = {
    _type: 'https://in-toto.io/Statement/v1',
    subject: [...digests].map(([name, sha256]) => ({ name, digest: { sha256 } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: `${repository}/blob/main/scripts/dist/main.ts`,
        externalParameters: { repository, ...(tag !== undefined && { tag }), ...(isChanged && { changed: true }) },
        resolvedDependencies: [{ uri: `git+${repository}`, digest: { gitCommit: sha } }]
      },
      runDetails: { builder: { id: `${repository}/blob/main/scripts/release.ts` } }
    }
  }
  return Buffer.from(`${JSON.stringify(statement, null, 2)}\n`)
}
