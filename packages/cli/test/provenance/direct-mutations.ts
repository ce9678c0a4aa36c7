import type { Mutation } from './mutated-copy.ts'

/** A mutation without what is the same for all of a file. */
type Change = Omit<Mutation, 'file'>

/** Those of one file below `packages`. */
export const of = (file: string, changes: readonly Change[]): Mutation[] =>
  changes.map((change) => ({ file: `packages/${file}`, ...change }))

const TESTS = 'packages/daemon/test'
export const RULE_TEST = { file: `${TESTS}/library/provenance.test.ts` }
const PROOF_TEST = { file: `${TESTS}/sources/hub/proof.test.ts` }
const ADOPT_TEST = { file: `${TESTS}/sources/hub/adopt.test.ts` }
const STRANGERS_TEST = { file: `${TESTS}/mirror/strangers.test.ts` }
const MEANWHILE_TEST = { file: `${TESTS}/mirror/withheld-meanwhile.test.ts` }
const JOINING_TEST = { file: `${TESTS}/swarm/seeding.test.ts`, name: 'made private while it joins' }
const KEYS_TEST = { file: `${TESTS}/swarm/webseed-keys.test.ts`, name: 'withheld' }
const DAMAGED_TEST = { file: `${TESTS}/api/damaged-state.test.ts`, name: 'stays private' }

/** Checks that random histories meet too seldom, or that take something to happen meanwhile. */
export const DIRECT: readonly Mutation[] = [
  ...of('daemon/src/library/provenance.ts', [
    {
      what: 'what was not seen to be given is withheld',
      find: `if (unproven.length > 0) {`,
      replace: `if (Date.now() < 0) {`,
      caughtBy: RULE_TEST
    },
    {
      what: 'what has no record is withheld',
      find: `if (state === undefined) return withheld(`,
      replace: `if (state === undefined) return Date.now() > 0 ? GIVEN : withheld(`,
      caughtBy: RULE_TEST
    },
    {
      what: 'what has a damaged record is withheld',
      find: `if (state === 'damaged') return withheld(`,
      replace: `if (state === 'damaged') return Date.now() > 0 ? GIVEN : withheld(`,
      caughtBy: RULE_TEST
    },
    {
      what: 'a pinned import makes nothing of what was complete',
      find: `if (wasComplete) return before`,
      replace: `if (wasComplete) return now`,
      caughtBy: RULE_TEST
    },
    {
      what: 'a source that nobody can tell of makes nothing better',
      find: `if (isWorse) return before`,
      replace: `if (isWorse) return { access: 'public' }`,
      caughtBy: RULE_TEST
    }
  ]),
  ...of('daemon/src/library/artifacts.ts', [
    {
      what: 'what a damaged record could have said counts',
      find: `{ access: 'unknown', decision: { is: 'private' } }`,
      replace: `{ access: 'public' }`,
      caughtBy: DAMAGED_TEST
    }
  ]),
  ...of('daemon/src/import/proof.ts', [
    {
      what: 'bytes that the store had are not the source’s',
      find: `else this.#taken.set(name, digest)`,
      replace: `else if (Date.now() < 0) this.#taken.set(name, digest)`,
      caughtBy: PROOF_TEST
    }
  ]),
  ...of('daemon/src/library/holdings.ts', [
    {
      what: 'only what is given, or what the source gave, proves bytes',
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
      what: 'what the owner keeps proves nothing',
      find: `!isPrivate({ provenance })`,
      replace: `provenance !== undefined`,
      caughtBy: PROOF_TEST
    },
    {
      what: 'bytes of an import that did not finish are its own',
      find: `(digest) => this.arrivals.isAlone(digest, key, { isBlob: true })`,
      replace: `async () => key !== ''`,
      caughtBy: PROOF_TEST
    },
    {
      what: 'bytes from disk inherit what they are here through',
      find: `isOthers = !isForeign(state)`,
      replace: `isOthers = true`,
      caughtBy: PROOF_TEST
    },
    {
      what: 'a pinned manifest that names bytes proves nothing',
      find: `return here.filter(({ digest }) => !proven.has(digest))`,
      replace: `return here.filter(({ digest }) => digest === '' && !proven.has(digest))`,
      caughtBy: { file: `${TESTS}/swarm/private.test.ts`, name: 'a pinned manifest that names a private file' }
    }
  ]),
  ...of('daemon/src/sources/hub/confirm.ts', [
    {
      what: 'only what the hub says is public is confirmed',
      find: `if (word !== 'public') continue`,
      replace: ``,
      caughtBy: ADOPT_TEST
    },
    {
      what: 'the hub’s word is about the files that are here',
      find: `if (!(await isListed(files.get(name), name))) return 'other-files'`,
      replace: `await isListed(files.get(name), name)`,
      caughtBy: ADOPT_TEST
    }
  ]),
  ...of('daemon/src/sources/hub/hub-imports.ts', [
    {
      what: 'strangers have no token',
      find: `const listings = new StrangerListings({ ...common, ...STRANGER_HUB })`,
      replace: `const listings = new StrangerListings({ ...common, ...STRANGER_HUB, ...(token !== undefined && { token }) })`,
      caughtBy: STRANGERS_TEST
    }
  ]),
  ...of('daemon/src/sources/hub/source.ts', [
    {
      what: 'a digest that a listing names is not taken from the store for a stranger',
      find: `: options.strangers === undefined
        ? { digest: sha256 }`,
      replace: `: Date.now() > 0
        ? { digest: sha256 }`,
      caughtBy: STRANGERS_TEST
    }
  ]),
  ...of('daemon/src/mirror/hub-demand.ts', [
    {
      what: 'the hub’s own name of a repository has to be allowed',
      find: `if (found === undefined || !this.allows(found.repo)) return undefined`,
      replace: `if (found === undefined) return undefined`,
      caughtBy: STRANGERS_TEST
    },
    {
      what: 'the store’s bytes are given to strangers only when the hub gave them to strangers',
      find: `const mayRead = async (): Promise<boolean> => this.#upstream.hasBrought(repo, name)`,
      replace: `const mayRead = async (): Promise<boolean> => true`,
      caughtBy: STRANGERS_TEST
    }
  ]),
  ...of('daemon/src/mirror/hub-mirror.ts', [
    {
      what: 'what is withheld is not brought in under its former names',
      find: `(await this.#withholds(upstream.repo))) return here`,
      replace: `Date.now() < 0) return here`,
      caughtBy: STRANGERS_TEST
    },
    {
      what: 'the hub’s mirror asks last',
      find: `manifests, 'hub-mirror')).size === manifests.size`,
      replace: `manifests, 'hub-mirror')).size <= manifests.size`,
      caughtBy: MEANWHILE_TEST
    }
  ]),
  ...of('daemon/src/mirror/served-models.ts', [
    {
      what: 'mirrors that know names make nothing of what is withheld',
      find: `!isShown(state, door)) return undefined`,
      replace: `state.incomplete === true) return undefined`,
      caughtBy: MEANWHILE_TEST
    },
    {
      what: 'the last question is the rule’s',
      find: `async (manifest) => verdictOf(await this.#standing(manifest), door).given`,
      replace: `async () => door !== undefined`,
      caughtBy: MEANWHILE_TEST
    },
    {
      what: 'the last question is asked again when a record changed',
      find: `if (artifacts.changes === changes) return those`,
      replace: `if (changes >= 0) return those`,
      caughtBy: MEANWHILE_TEST
    },
    {
      what: 'what is to come is not shown when bytes of it came by another way',
      find: `...(unproven.length > 0 && { unproven })`,
      replace: `...(unproven.length > 0 && {})`,
      caughtBy: { file: `${TESTS}/mirror/oci-unproven.test.ts` }
    }
  ]),
  ...of('daemon/src/mirror/arriving-blob.ts', [
    {
      what: 'a blob that arrives while a client waits for it is asked about',
      find: `&& (await this.#options.mayRead()))`,
      replace: `)`,
      caughtBy: { file: `${TESTS}/mirror/oci-unproven.test.ts` }
    }
  ]),
  ...of('daemon/src/mirror/send-file.ts', [
    {
      what: 'a file is asked about when it is open',
      find: `if (!(await orClosed(reader, mayGive))) return false`,
      replace: ``,
      caughtBy: MEANWHILE_TEST
    }
  ]),
  ...of('daemon/src/swarm/seeding.ts', [
    {
      what: 'what is not given is held back',
      find: `    const reason = heldBackReason(state, config)
    if (reason !== undefined) {`,
      replace: `    const reason = heldBackReason(state, config)
    if (reason !== undefined && Date.now() < 0) {`,
      caughtBy: { file: `${TESTS}/swarm/seeding.test.ts`, name: 'a model that needed a token is withheld' }
    },
    {
      what: 'a join looks at the state again',
      find: `if (!(await this.#isShared(torrent.manifestDigest))) return`,
      replace: ``,
      caughtBy: JOINING_TEST
    },
    {
      what: 'what becomes private waits for a join under way',
      find: `await this.#joins.get(manifestDigest)`,
      replace: ``,
      caughtBy: JOINING_TEST
    }
  ]),
  ...of('daemon/src/swarm/fetches.ts', [
    {
      what: 'a fetch of what is withheld is quiet',
      find: `quiet: !verdictOf(state, 'swarm', config).given`,
      replace: `quiet: false`,
      caughtBy: { file: `${TESTS}/swarm/private.test.ts`, name: 'held-back model' }
    }
  ]),
  ...of('daemon/src/swarm/swarm-client.ts', [
    {
      what: 'a private import that has no manifest yet is quiet',
      find: `isWithheld: (artifact) => !verdictOf(artifact, 'swarm', this.#context.config.swarm).given`,
      replace: `isWithheld: () => false`,
      caughtBy: { file: `${TESTS}/swarm/private.test.ts`, name: 'is not announced while it looks' }
    }
  ]),
  ...of('daemon/src/swarm/signed-requests.ts', [
    {
      what: 'the first signed request marks its artifact',
      find: `if (state?.incomplete !== true || state.provenance.access === 'restricted') return headers`,
      replace: `if (state !== undefined) return headers`,
      caughtBy: KEYS_TEST
    }
  ]),
  ...of('daemon/src/sources/catalog/catalog.ts', [
    {
      what: 'a private pull tells nobody',
      find: `quiet = !verdictOf({ provenance }, 'swarm', config.swarm).given`,
      replace: `quiet = false`,
      caughtBy: { file: `${TESTS}/sources/catalog/withheld.slow.ts`, name: 'is not announced to the listing' }
    }
  ])
]
