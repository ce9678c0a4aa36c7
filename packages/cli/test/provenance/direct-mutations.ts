import type { Mutation } from './mutated-copy.ts'

/** A mutation without what is the same for all of a file. */
type Change = Omit<Mutation, 'file'>

/** Those of one file below `packages`. */
export const of = (file: string, changes: readonly Change[]): Mutation[] =>
  changes.map((change) => ({ file: `packages/${file}`, ...change }))

const TESTS = 'packages/daemon/test'
export const RULE_TEST = { file: 'packages/internal/state/test/provenance.test.ts' }
const PROOF_TEST = { file: `${TESTS}/sources/hub/proof.test.ts` }
const ADOPT_TEST = { file: `${TESTS}/sources/hub/adopt.test.ts` }
const BESIDE_TEST = { file: 'packages/cli/test/adopt-sharing.test.ts', name: 'small files that may leave' }
const STRANGERS_TEST = { file: `${TESTS}/mirror/strangers.test.ts` }
const MEANWHILE_TEST = { file: `${TESTS}/mirror/withheld-meanwhile.test.ts` }
const JOINING_TEST = { file: `${TESTS}/swarm/seeding.test.ts`, name: 'made private while it joins' }
const KEYS_TEST = { file: `${TESTS}/swarm/webseed-keys.test.ts`, name: 'withheld' }
const DAMAGED_TEST = { file: `${TESTS}/api/damaged-state.test.ts`, name: 'stays private' }

/** Checks that random histories meet too seldom, or that take something to happen meanwhile. */
export const DIRECT: readonly Mutation[] = [
  ...of('internal/state/src/provenance.ts', [
    {
      what: 'an artifact with unproven bytes is withheld',
      find: `if (unproven.length > 0) {`,
      replace: `if (Date.now() < 0) {`,
      caughtBy: RULE_TEST
    },
    {
      what: 'an artifact without a record is withheld',
      find: `if (state === undefined) return withheld(`,
      replace: `if (state === undefined) return Date.now() > 0 ? GIVEN : withheld(`,
      caughtBy: RULE_TEST
    },
    {
      what: 'an artifact with a damaged record is withheld',
      find: `if (state === 'damaged') return withheld(`,
      replace: `if (state === 'damaged') return Date.now() > 0 ? GIVEN : withheld(`,
      caughtBy: RULE_TEST
    },
    {
      what: 'a pinned import does not change the provenance of a complete artifact',
      find: `if (wasComplete) return before`,
      replace: `if (wasComplete) return now`,
      caughtBy: RULE_TEST
    },
    {
      what: 'a source of unknown access does not make an artifact public',
      find: `if (isWorse) return before`,
      replace: `if (isWorse) return { access: 'public' }`,
      caughtBy: RULE_TEST
    }
  ]),
  ...of('internal/state/src/artifact-import.ts', [
    {
      what: 'a damaged record counts as private',
      find: `{ access: 'unknown', decision: { is: 'private' } }`,
      replace: `{ access: 'public' }`,
      caughtBy: DAMAGED_TEST
    }
  ]),
  ...of('library/src/import/proof.ts', [
    {
      what: 'bytes that the store already had do not count as the source’s',
      find: `else this.#taken.set(name, digest)`,
      replace: `else if (Date.now() < 0) this.#taken.set(name, digest)`,
      caughtBy: PROOF_TEST
    }
  ]),
  ...of('internal/state/src/holdings.ts', [
    {
      what: 'only artifacts that may leave, or that the same source gave, prove bytes',
      find: `(state) => (!isRestricted && isGiven(state)) || gaveItself(state, source)`,
      replace: `(state) => state !== undefined`,
      caughtBy: PROOF_TEST
    },
    {
      what: 'the name of a repository proves nothing',
      find: `source.revision === now.revision &&`,
      replace: ``,
      caughtBy: PROOF_TEST
    },
    {
      what: 'a private artifact proves nothing',
      find: `!isPrivate({ provenance })`,
      replace: `provenance !== undefined`,
      caughtBy: PROOF_TEST
    },
    {
      what: 'bytes of an unfinished import count for that import alone',
      find: `(digest) => this.arrivals.isAlone(digest, key, { isBlob: true })`,
      replace: `async () => key !== ''`,
      caughtBy: PROOF_TEST
    },
    {
      what: 'bytes from disk inherit the provenance of the same bytes in the store',
      find: `isOthers = !isForeign(state)`,
      replace: `isOthers = true`,
      caughtBy: PROOF_TEST
    },
    {
      what: 'a pinned manifest that names bytes proves nothing',
      find: `const unproven = here.filter(({ digest }) => !proven.has(digest))`,
      replace: `const unproven = here.filter(({ digest }) => digest === '' && !proven.has(digest))`,
      caughtBy: { file: `${TESTS}/swarm/private.test.ts`, name: 'a pinned manifest that names a private file' }
    }
  ]),
  ...of('sources/src/hub/confirm.ts', [
    {
      what: 'only a repository that the hub calls public is confirmed',
      find: `if (word !== 'public') continue`,
      replace: ``,
      caughtBy: ADOPT_TEST
    },
    {
      what: 'the hub’s confirmation requires that it lists the same files',
      find: `if (!(await isOneOf(candidates, file, store))) return false`,
      replace: `await isOneOf(candidates, file, store)`,
      caughtBy: ADOPT_TEST
    },
    {
      what: 'companions that stay here need not be the hub’s',
      find: `givenCompanions(document, { source })?.document.files ?? []`,
      replace: `document.files`,
      caughtBy: BESIDE_TEST
    },
    {
      what: 'the hub’s answer to an adoption requires that it lists the same files',
      find: `files.every((file) => isClaimed(file, byName, digests))`,
      replace: `files.every((file) => isClaimed(file, byName, digests) || Date.now() > 0)`,
      caughtBy: ADOPT_TEST
    }
  ]),
  ...of('library/src/local/seen-bytes.ts', [
    {
      what: 'small files that leave with an adopted model must be the hub’s',
      find: `&& !isForLoaders(name)`,
      replace: `&& name !== ''`,
      caughtBy: BESIDE_TEST
    }
  ]),
  ...of('sources/src/hub/clients.ts', [
    {
      what: 'requests for strangers carry no token',
      find: `userAgent, ...STRANGER_HUB })`,
      replace: `userAgent, ...STRANGER_HUB, ...({ token: access.token } as object) })`,
      caughtBy: STRANGERS_TEST
    }
  ]),
  ...of('sources/src/hub/source.ts', [
    {
      what: 'a digest in a listing gives a stranger no bytes from the store',
      find: `: options.strangers === undefined
        ? { digest: sha256 }`,
      replace: `: Date.now() > 0
        ? { digest: sha256 }`,
      caughtBy: STRANGERS_TEST
    }
  ]),
  ...of('mirror/src/hub-demand.ts', [
    {
      what: 'the hub’s canonical name of a repository must be allowed, too',
      find: `if (found === undefined || !this.allows(found.repo)) return undefined`,
      replace: `if (found === undefined) return undefined`,
      caughtBy: STRANGERS_TEST
    },
    {
      what: 'strangers get the store’s bytes only if the hub served them without a credential',
      find: `const mayRead = async (): Promise<boolean> => this.#upstream.hasBrought(repo, name)`,
      replace: `const mayRead = async (): Promise<boolean> => true`,
      caughtBy: STRANGERS_TEST
    }
  ]),
  ...of('mirror/src/hub-mirror.ts', [
    {
      what: 'a withheld model is not fetched under its former names',
      find: `(await this.#withholds(upstream.repo))) return here`,
      replace: `Date.now() < 0) return here`,
      caughtBy: STRANGERS_TEST
    },
    {
      what: 'the hub’s mirror asks again before it answers',
      find: `manifests, 'hub-mirror')).size === manifests.size`,
      replace: `manifests, 'hub-mirror')).size <= manifests.size`,
      caughtBy: MEANWHILE_TEST
    }
  ]),
  ...of('mirror/src/served-models.ts', [
    {
      what: 'mirrors that look models up by name find no withheld model',
      find: `!isShown(state, door)) return undefined`,
      replace: `state.incomplete === true) return undefined`,
      caughtBy: MEANWHILE_TEST
    },
    {
      what: 'the last check asks the rule',
      find: `async (manifest) => verdictOf(await this.#standing(manifest), door).given`,
      replace: `async () => door !== undefined`,
      caughtBy: MEANWHILE_TEST
    },
    {
      what: 'the last check repeats if a record changed',
      find: `if (artifacts.changes === changes) return those`,
      replace: `if (changes >= 0) return those`,
      caughtBy: MEANWHILE_TEST
    },
    {
      what: 'a pending model is not shown if another import brought some of its bytes',
      find: `...(unproven.length > 0 && { unproven })`,
      replace: `...(unproven.length > 0 && {})`,
      caughtBy: { file: `${TESTS}/mirror/oci-unproven.test.ts` }
    }
  ]),
  ...of('mirror/src/arriving-blob.ts', [
    {
      what: 'a blob that arrives while a client waits is checked before it is sent',
      find: `&& (await this.#options.mayRead()))`,
      replace: `)`,
      caughtBy: { file: `${TESTS}/mirror/oci-unproven.test.ts` }
    }
  ]),
  ...of('mirror/src/send-file.ts', [
    {
      what: 'a file is checked once it is open',
      find: `if (!(await orClosed(reader, mayGive))) return false`,
      replace: ``,
      caughtBy: MEANWHILE_TEST
    }
  ]),
  ...of('sharing/src/seeding.ts', [
    {
      what: 'a model that may not leave is held back from the swarm',
      find: `    const reason = heldBackReason(state, settings, advise)
    if (reason !== undefined) {`,
      replace: `    const reason = heldBackReason(state, settings, advise)
    if (reason !== undefined && Date.now() < 0) {`,
      caughtBy: { file: `${TESTS}/swarm/seeding.test.ts`, name: 'a model that needed a token is withheld' }
    },
    {
      what: 'a join reads the state again',
      find: `if (!(await this.#isShared(torrent.manifestDigest))) return`,
      replace: ``,
      caughtBy: JOINING_TEST
    },
    {
      what: 'making a model private waits for a join in progress',
      find: `await this.#joins.get(manifestDigest)`,
      replace: ``,
      caughtBy: JOINING_TEST
    }
  ]),
  ...of('sharing/src/fetches.ts', [
    {
      what: 'a fetch of a withheld model does not announce',
      find: `quiet: !verdictOf(state, 'swarm', settings).given`,
      replace: `quiet: false`,
      caughtBy: { file: `${TESTS}/swarm/private.test.ts`, name: 'held-back model' }
    }
  ]),
  ...of('sharing/src/pinned-imports.ts', [
    {
      what: 'a private import without its manifest does not announce',
      find: `isWithheld: (artifact) => !verdictOf(artifact, 'swarm', settings).given`,
      replace: `isWithheld: () => false`,
      caughtBy: { file: `${TESTS}/swarm/private.test.ts`, name: 'is not announced while it looks' }
    }
  ]),
  ...of('sharing/src/signed-requests.ts', [
    {
      what: 'the first signed request marks its artifact',
      find: `if (state?.incomplete !== true || state.provenance.access === 'restricted') return headers`,
      replace: `if (state !== undefined) return headers`,
      caughtBy: KEYS_TEST
    }
  ]),
  ...of('catalog/src/catalog.ts', [
    {
      what: 'a private pull does not announce',
      find: `quiet = !verdictOf({ provenance }, 'swarm', sharing).given`,
      replace: `quiet = false`,
      caughtBy: { file: `${TESTS}/sources/catalog/withheld.slow.ts`, name: 'is not announced to the listing' }
    }
  ])
]
