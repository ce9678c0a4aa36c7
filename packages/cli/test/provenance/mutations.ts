import { COMPANIONS } from './companion-mutations.ts'
import { DIRECT, of, RULE_TEST } from './direct-mutations.ts'
import { DOCUMENTS } from './document-mutations.ts'
import { EVICTIONS } from './evict-mutations.ts'
import type { Mutation } from './mutated-copy.ts'
import { TRUST } from './trust-mutations.ts'
import { USES } from './use-mutations.ts'

const TESTS = 'packages/daemon/test'
const ROADS_TEST = { file: 'packages/cli/test/provenance/roads.slow.ts' }
const PINS_TEST = { file: 'packages/cli/test/provenance/hostile-pins.test.ts', name: 'what is here leaves as no' }
const MARKED_TEST = { file: 'packages/cli/test/provenance/roads.slow.ts', name: 'by an archive' }

/** The rule itself. */
const RULE = of('internal/state/src/provenance.ts', [
  {
    what: 'a model that the owner keeps private is withheld',
    dies: [1, 48],
    find: `if (decision?.is === 'private') return`,
    replace: `if (Date.now() < 0) return`
  },
  {
    what: 'a model that needed a credential is withheld',
    dies: [1, 207],
    find: `if (access === 'restricted' && !(`,
    replace: `if (Date.now() < 0 && !(`
  },
  {
    what: 'seed_restricted opens the swarm and its webseed, and no other door',
    caughtBy: RULE_TEST,
    find: `!(seedRestricted && (door === 'swarm' || door === 'webseed'))`,
    replace: `!seedRestricted`
  },
  {
    what: 'a model that its packer marked is withheld',
    caughtBy: RULE_TEST,
    find: `if (marked === true) return`,
    replace: `if (Date.now() < 0) return`
  },

  {
    what: 'a model of unknown access is withheld',
    dies: [1, 93],
    find: "if (access === 'unknown') return",
    replace: 'if (Date.now() < 0) return'
  },
  {
    what: 'the owner’s decision outlives the next import',
    dies: [1, 165],
    find: `const decision = now.decision ?? before.decision`,
    replace: `const decision = now.decision`
  },
  {
    what: 'a private import marks its models as private',
    dies: [1, 48],
    find: `isMarkedPrivate ? { ...provenance, decision: decided('private', clock) } : provenance`,
    replace: `isMarkedPrivate && Date.now() < 0 ? { ...provenance, decision: decided('private', clock) } : provenance`
  }
])

/** Each door asks the rule. */
const DOORS = [
  ...of('sharing/src/seeding.ts', [
    {
      what: 'a model that becomes withheld leaves the swarm',
      dies: [1, 46],
      find: `if (reason === undefined) return
      this.#heldBack`,
      replace: `if (reason === undefined || Date.now() > 0) return
      this.#heldBack`
    }
  ]),
  ...of('sharing/src/seeding.ts', [
    {
      what: 'a pinned import of a seed may take it out of the swarm',
      caughtBy: { file: `${TESTS}/swarm/private.test.ts`, name: 'a pinned import makes it private' },
      find: `seeding === true) return this.withdraw(manifestDigest)`,
      replace: `seeding === true) return`
    }
  ]),
  ...of('sharing/src/swarm-client.ts', [
    {
      what: 'any other import of a seed may take it out of the swarm',
      caughtBy: { file: `${TESTS}/swarm/seeding.test.ts`, name: 'leaves at once when another import' },
      find: `      .withdraw(manifestDigest)
      .then(`,
      replace: `      .awaitsVerification(manifestDigest)
    void Promise.resolve().then(`
    }
  ]),
  ...of('daemon/src/api/routes/models.ts', [
    {
      what: 'the swarm hears when a model is made private',
      caughtBy: { file: `${TESTS}/swarm/private.test.ts`, name: 'a model made private leaves at once' },
      find: `await deps.onWithheld(manifestDigest)`,
      replace: `await undefined`
    }
  ]),
  ...of('mirror/src/served-models.ts', [
    {
      what: 'the hub’s mirror shows only models that may leave',
      dies: [1, 2],
      find: `if (!isShown(state, 'hub-mirror')) continue`,
      replace: `if (state.incomplete === true) continue`
    },
    {
      what: 'the hub’s mirror hides a repository with a withheld model',
      caughtBy: ROADS_TEST,
      find: `if (!verdictOf(state, 'hub-mirror').given) withheld.add(key)`,
      replace: `if (Date.now() < 0) withheld.add(key)`
    }
  ])
]

const SHARING_TEST = 'packages/cli/test/adopt-sharing.test.ts'

/** Where it is set who may have what comes in. */
const SOURCES = [
  ...of('sources/src/hub/provenance.ts', [
    {
      what: 'a model in a gated or private repository of the hub is restricted',
      caughtBy: PINS_TEST,
      find: `if (!restricted) return`,
      replace: `if (Date.now() > 0) return`
    }
  ]),
  ...of('sources/src/oci/listing.ts', [
    {
      what: 'a model that a registry gave to a login is restricted',
      caughtBy: { ...ROADS_TEST, name: 'a registry with a login' },
      find: `repository.usedCredentials ?`,
      replace: `repository.usedCredentials && Date.now() < 0 ?`
    }
  ]),
  ...of('library/src/local/adopted.ts', [
    {
      what: 'the hub decides whether an adopted cache is public',
      caughtBy: { file: 'packages/daemon/test/sources/hub/adopt.test.ts', name: 'an adopted' },
      find: `if (said === 'public') return`,
      replace: `if (said !== undefined) return`
    },
    {
      what: 'adopted files are the owner’s own only if the caller says so',
      caughtBy: { file: 'packages/daemon/test/import/adopt.test.ts', name: 'own only if the caller says so' },
      find: `const isOwn = own &&`,
      replace: `const isOwn =`
    },
    {
      what: 'a caller is not believed about files in the cache of a tool',
      caughtBy: { file: SHARING_TEST, name: 'a plain import of a path in a cache' },
      find: `(await downloadAmong(files, tools)) === undefined`,
      replace: `(await downloadAmong([], tools)) === undefined`
    }
  ]),
  ...of('library/src/local/source.ts', [
    {
      what: 'a plain import of files in the cache of a tool is not the owner’s own',
      caughtBy: { file: SHARING_TEST, name: 'a plain import of a path in a cache' },
      find: `access: download === undefined ? 'own' : 'unknown'`,
      replace: `access: 'own'`
    }
  ]),
  ...of('daemon/src/jobs/local-imports.ts', [
    {
      what: 'with seed_local off, own files are private',
      caughtBy: { file: 'packages/daemon/test/swarm/private.test.ts', name: 'with seed_local off' },
      find: `const selection = importSelectionOf(more, this.#seedLocal === false)
    return this.#deps.importJobs.start({
      kind: 'import-local',
      ref: as,
      repo,
      source: await localSource(paths, { as, companions, tools: toolsHere(), advise: this.#deps.advise })`,
      replace: `const selection = importSelectionOf(more, false)
    return this.#deps.importJobs.start({
      kind: 'import-local',
      ref: as,
      repo,
      source: await localSource(paths, { as, companions, tools: toolsHere(), advise: this.#deps.advise })`
    }
  ]),
  ...of('daemon/src/jobs/oci-imports.ts', [
    {
      what: 'with seed_local off, layouts are private',
      caughtBy: ROADS_TEST,
      find: `path !== undefined && this.#seedLocal() === false`,
      replace: `path !== undefined && Date.now() < 0`
    }
  ])
]

/** What the command line passes on, and what is said of it to those who get it. */
const PASSING_ON = [
  ...of('cli/src/models/packing.ts', [
    {
      what: 'export, push and publish ask the rule',
      caughtBy: PINS_TEST,
      find: `if (isWithheld && withheld !== true) {`,
      replace: `if (isWithheld && Date.now() < 0) {`
    }
  ]),
  ...of('oci/src/pack.ts', [
    {
      what: 'a withheld model is marked when it is packed',
      caughtBy: MARKED_TEST,
      find: `...(isWithheld === true ? [`,
      replace: `...(isWithheld === true && Date.now() < 0 ? [`
    }
  ]),
  ...of('oci/src/unpack.ts', [
    {
      what: 'an artifact packed as withheld is read as withheld',
      caughtBy: MARKED_TEST,
      find: `isWithheld: annotations[WITHHELD_ANNOTATION] !== undefined`,
      replace: `isWithheld: Date.now() < 0`
    }
  ]),
  ...of('sources/src/oci/source.ts', [
    {
      what: 'imports of OCI artifacts honour the mark of the packer',
      caughtBy: MARKED_TEST,
      find: `...(model.isWithheld && { marked: true })`,
      replace: `...(model.isWithheld && Date.now() < 0 && { marked: true })`
    }
  ])
]

/** The checks at the doors, and the places that set who may have what: each is taken away in turn. */
export const MUTATIONS: readonly Mutation[] = [
  ...RULE,
  ...DOORS,
  ...SOURCES,
  ...PASSING_ON,
  ...DIRECT,
  ...COMPANIONS,
  ...TRUST,
  ...USES,
  ...EVICTIONS,
  ...DOCUMENTS
]
