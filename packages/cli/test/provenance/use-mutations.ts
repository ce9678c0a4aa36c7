// One file, as it is one list: each place of the product that asks who may have what.
import type { DirectTest, Mutation } from './mutated-copy.ts'

const DAEMON = 'packages/daemon/test'
const testOf = (file: string, name?: string): DirectTest => ({ file, ...(name !== undefined && { name }) })
const ROADS = (name: string): DirectTest => testOf('packages/cli/test/provenance/roads.slow.ts', name)
const PROOF = (name: string): DirectTest => testOf(`${DAEMON}/sources/hub/proof.test.ts`, name)
const PRIVATE = (name: string): DirectTest => testOf(`${DAEMON}/swarm/private.test.ts`, name)
const SEEDING = (name: string): DirectTest => testOf(`${DAEMON}/swarm/seeding.test.ts`, name)
const MEANWHILE = (name: string): DirectTest => testOf(`${DAEMON}/mirror/withheld-meanwhile.test.ts`, name)
const COMING = (name: string): DirectTest => testOf(`${DAEMON}/mirror/coming.test.ts`, name)
const STRANGERS = (name: string): DirectTest => testOf(`${DAEMON}/mirror/strangers.test.ts`, name)
const CATALOG = (name: string): DirectTest => testOf(`${DAEMON}/sources/catalog/withheld.slow.ts`, name)
const KEYS = testOf(`${DAEMON}/swarm/webseed-keys.test.ts`, 'withheld')
const UNPROVEN = testOf(`${DAEMON}/mirror/oci-unproven.test.ts`)
const ARTIFACTS = testOf('packages/internal/state/test/artifacts.test.ts')
const MODELS = testOf(`${DAEMON}/library/models.test.ts`, 'reports thousands of models')

/** The test that finds it, what the check is for, its text, and what stands there without it. */
type Row = readonly [caughtBy: DirectTest, what: string, find: string, replace: string]

const of = (file: string, rows: readonly Row[]): Mutation[] =>
  rows.map(([caughtBy, what, find, replace]) => ({
    file: `packages/${file}`,
    what,
    find,
    replace,
    caughtBy
  }))

const LIBRARY = [
  ...of('library/src/embedded/served-parts.ts', [
    [
      testOf(`${DAEMON}/embedded/served-beside.test.ts`, 'what was unpacked goes'),
      'what a mirror beside the owner unpacked goes with what is withheld',
      "(await needed.isGiven(digest)) && verdictOf(await artifacts.standing(digest), 'hub-mirror').given",
      'needed.isGiven(digest)'
    ]
  ]),
  ...of('library/src/import/importer.ts', [
    [
      PRIVATE('a private import is not announced, also after'),
      'an import is marked before its artifacts are recorded',
      'withMark(await source.provenance(), selection.private, this.#deps.clock)',
      'await source.provenance()'
    ],
    [
      ROADS('by an archive'),
      'the result of an import names withheld models',
      'const notice = withheldNotice(',
      'const notice = ((..._: unknown[]) => undefined as string | undefined)('
    ]
  ]),
  ...of('library/src/import/importer.ts', [
    [
      COMING('a model that needs a signature'),
      'a model that needs a signature is shown only after its check',
      "if (rule?.mode === 'require') return undefined",
      ''
    ]
  ]),
  ...of('library/src/import/proof.ts', [
    [
      COMING('another source began'),
      'bytes that another source began do not count before this import reaches them',
      'const isOthers = isBegun && !(await this.#holdings.arrivals.isAlone(digest, this.#key, { isBlob }))',
      'const isOthers = isBegun && Date.now() < 0'
    ],
    [
      COMING('weights are private here'),
      'bytes in the store do not count before this import reaches them',
      'if (isBlob || isOthers) taken.set(name, digest)',
      'if (isOthers) taken.set(name, digest)'
    ],
    [
      PROOF('leftovers of an interrupted gated import'),
      'a partial blob of another source does not count for this one',
      'const isAlone = await arrivals.isAlone(digest, this.#key, { isBlob: false })',
      'const isAlone = Date.now() > 0'
    ],
    [
      PROOF('local weights that are here only'),
      'own files inherit the provenance of the same bytes in the store',
      "facts.access === 'own' ? await this.#holdings.inherited(weights) : undefined",
      'undefined as undefined | Map<Sha256Digest, Provenance>'
    ]
  ]),
  ...of('internal/state/src/artifact-import.ts', [
    [
      ARTIFACTS,
      'what was known of an artifact counts at its next import',
      'mergedProvenance(standing.provenance, now.provenance, { isPinned, wasComplete })',
      'now.provenance'
    ],
    [
      testOf(`${DAEMON}/api/damaged-state.test.ts`, 'stays private'),
      'a damaged record counts as private at the next import',
      'mergedProvenance(OF_DAMAGED, now.provenance, { isPinned, wasComplete: true })',
      'now.provenance'
    ]
  ]),
  ...of('internal/state/src/artifacts.ts', [
    [
      KEYS,
      'a webseed key that was used restricts its artifact',
      "return this.#whileIncomplete(manifestDigest, { access: 'restricted', by: 'webseed-key' })",
      'return Promise.resolve(manifestDigest.length < 0)'
    ],
    [
      UNPROVEN,
      'bytes that a pinned import did not fetch itself count',
      'const provenance = mergedProvenance(before.provenance, now, { isPinned: true, wasComplete: false })',
      'const { provenance } = before'
    ],
    [
      MEANWHILE('nothing is unpacked for'),
      'mirrors look again when an artifact may leave again',
      ' || !sameStanding(a, b)',
      ''
    ],
    [
      ARTIFACTS,
      'the hub’s confirmation changes only unknown access',
      "if (before.provenance.access !== 'unknown') return undefined",
      'if (before === undefined) return undefined'
    ]
  ]),
  ...of('internal/state/src/holdings.ts', [
    [
      UNPROVEN,
      'a door learns which bytes of an unfinished artifact came from another import',
      'const asked = this.#pinnedFiles(manifestDigest)',
      'const asked: Promise<PinnedFiles> = Promise.resolve({ unproven: [], absent: [] })'
    ],
    [
      PROOF('a listing that names the digest of a private file'),
      'only artifacts that may leave vouch for bytes',
      "const isGiven = (state: HoldingArtifact): boolean => verdictOf(state, 'export').given",
      'const isGiven = (state: HoldingArtifact): boolean => state !== undefined'
    ]
  ]),
  ...of('internal/state/src/members.ts', [
    [
      MODELS,
      'the list marks private models',
      '(state !== undefined && isPrivate(state)),',
      '(state !== undefined && Date.now() < 0),'
    ],
    [
      MODELS,
      'the list marks restricted models',
      '(state !== undefined && isRestricted(state)))',
      '(state !== undefined && Date.now() < 0))'
    ],
    [
      MODELS,
      'the list marks withheld models',
      "const verdict = verdictOf(state, 'export')",
      "const verdict = verdictOf({ provenance: { access: 'own' } }, 'export')"
    ]
  ]),
  ...of('internal/state/src/provenance.ts', [
    [
      PRIVATE('a private import is not announced, also after'),
      'a withheld model is held back from the swarm',
      "const verdict = verdictOf(state, 'swarm', config)",
      'const verdict: Verdict = GIVEN'
    ],
    [
      ROADS('by a webseed'),
      'a notice names withheld models',
      "const verdict = verdictOf(state, 'export')",
      'const verdict: Verdict = GIVEN'
    ]
  ])
]

const MIRRORS = [
  ...of('mirror/src/hub-mirror.ts', [
    [
      MEANWHILE('a file is not sent'),
      'the hub’s mirror asks when a file is open',
      'const mayGive = (): Promise<boolean> => this.#mayGive(repo, found)',
      'const mayGive = async (): Promise<boolean> => true'
    ],
    [
      MEANWHILE('is not answered if'),
      'the hub’s mirror asks before it sends a document',
      'if (!(await this.#mayGive(repo, found))) return this.#unknown(response, repo)',
      ''
    ],
    [
      STRANGERS('a file fetched for a stranger'),
      'a file from the hub is checked last',
      'if (upstream !== undefined && ((await this.#withholds(repo)) || (await this.#withholds(upstream.repo))))',
      'if (Date.now() < 0)'
    ],
    [
      STRANGERS('is not looked up under'),
      'a withheld model is not looked up under the requested name',
      'if (demand?.allows(repo) !== true || (await this.#withholds(repo))) return here',
      'if (demand?.allows(repo) !== true) return here'
    ]
  ]),
  ...of('mirror/src/oci-mirror.ts', [
    [
      MEANWHILE('is not answered if'),
      'the OCI mirror asks before it sends a manifest',
      'if (await this.#mayGive(name, artifact)) return form.manifest',
      'if (artifact !== undefined) return form.manifest'
    ],
    [
      MEANWHILE('a file is not sent'),
      'the OCI mirror asks when a file is open',
      'const mayGive = (): Promise<boolean> => this.#mayGive(name, artifact)',
      'const mayGive = async (): Promise<boolean> => true'
    ],
    [
      MEANWHILE('a small blob is not sent'),
      'the OCI mirror asks before it sends a small blob',
      'if (!(await mayGive())) {',
      'if (artifact === undefined) {'
    ]
  ]),
  ...of('mirror/src/s3-mirror.ts', [
    [
      MEANWHILE('is not answered if'),
      'the S3 mirror asks before it sends a listing',
      'if ((await this.#served.shown(page.of, DOOR)).size === page.of.size) return page',
      'if (page.of.size >= 0) return page'
    ],
    [
      MEANWHILE('a file is not sent'),
      'the S3 mirror asks when a file is open',
      '(await this.#served.shown([shown], DOOR)).size === 1',
      'DOOR !== undefined'
    ]
  ]),
  ...of('mirror/src/hub-demand.ts', [
    [
      STRANGERS('a private file is not sent'),
      'strangers get from the store only bytes that the hub served them',
      'if ((await mayRead()) && (await this',
      'if ((await this'
    ]
  ]),
  ...of('sharing/src/companions-swarm.ts', [
    [
      testOf(`${DAEMON}/swarm/companions-withheld.test.ts`, 'has just become withheld'),
      'companions of a model that is held back are not announced',
      '?.seeding !== true || heldBackReason(standing, settings) !== undefined)',
      '?.seeding !== true)'
    ]
  ]),
  ...of('sources/src/hub/outdated.ts', [
    [
      testOf(`${DAEMON}/sources/hub/outdated.slow.ts`, 'private and restricted models stay so'),
      'an upgrade keeps the owner’s mark',
      '...(isPrivate(state) && { private: true }),',
      ''
    ]
  ]),
  ...of('mirror/src/served-models.ts', [
    [
      COMING('a private import is invisible'),
      'clients do not wait for a withheld import',
      'const { given } = verdictOf({ provenance: await by.provenanceOf() }, door)',
      'const given = by !== undefined && door !== undefined'
    ],
    [
      COMING('an import into a repository with a withheld artifact'),
      'clients do not wait for an import into a repository with a withheld model',
      'if (given && !(await this.withholds(repoOf(by)))) coming.push(by)',
      'if (given) coming.push(by)'
    ],
    [
      COMING('readers that wait are cut'),
      'models of a running import are withheld with their repository',
      'if (await this.withholds(repoOf(model.by))) return undefined',
      ''
    ],
    [
      COMING('another source began'),
      'models of a running import are checked at each request',
      '{ ...model.state, provenance: await model.by.provenanceOf(model.manifest) }',
      "{ ...model.state, provenance: { access: 'public' } }"
    ],
    [
      COMING('an import into a repository with a withheld artifact'),
      'a repository is withheld whatever the source of its models',
      "if (!verdictOf(state, 'hub-mirror').given) others.push(digest)",
      ''
    ],
    [
      MEANWHILE('a running download ends'),
      'a download ends when its model becomes withheld',
      "const { given } = verdictOf(await this.#standing(manifest).catch(() => 'damaged' as const), door)",
      'const given = true'
    ],
    [
      UNPROVEN,
      'a pending model is checked for unproven bytes at each request',
      'const unproven = isComing ? await holdings.unprovenNow(manifest) : []',
      'const unproven: string[] = []'
    ],
    [
      UNPROVEN,
      'a pending model is shown only if it may leave',
      'return verdictOf({ provenance }, door).given',
      'return provenance !== undefined && door !== undefined'
    ],
    [
      MEANWHILE('nothing is unpacked for'),
      'only models that a door may serve are laid out',
      'state.incomplete !== true && verdictOf(state, door).given',
      'state.incomplete !== true && door !== undefined'
    ]
  ]),
  ...of('mirror/src/artifact-files.ts', [
    [
      COMING('blobs from another source'),
      'a read waits for the import, whatever the store has meanwhile',
      'const isHere = by === undefined || !file.isBlob || (await by.hasGiven(file.digest))',
      'const isHere = true'
    ],
    [
      COMING('blobs from another source'),
      'a reader gets only bytes that the import brought',
      'const mayRead = async (): Promise<boolean> => (await by.hasGiven(file.digest)) && reading.mayRead()',
      'const { mayRead } = reading'
    ]
  ]),
  ...of('mirror/src/send-file.ts', [
    [
      MEANWHILE('a file is not sent'),
      'an open file is checked',
      'mayBe = await mayGive()',
      'mayBe = mayGive !== undefined'
    ],
    [
      STRANGERS('a file fetched for a stranger'),
      'an arriving file is checked once it has arrived',
      'if (reader === undefined || !(await orClosed(reader, mayGive))) return false',
      'if (reader === undefined) return false'
    ]
  ]),
  ...of('daemon/src/api/routes/models.ts', [
    [
      testOf('packages/cli/test/why.test.ts'),
      '`why` shows the verdict of each door',
      'verdictOf(state, door, config.swarm)',
      "verdictOf({ provenance: { access: 'own' } }, door)"
    ]
  ])
]

const SWARM = [
  ...of('sharing/src/fetches.ts', [
    [
      UNPROVEN,
      'a fetch asks which bytes came from another import',
      'const unproven = await holdings.unprovenOf(manifestDigest)',
      'const unproven: string[] = []'
    ],
    [
      UNPROVEN,
      'a fetch records which bytes came from another import',
      'if (unproven.length > 0) await artifacts.tookUnproven(manifestDigest, unproven)',
      ''
    ],
    [
      PRIVATE('a model made private while it is fetched'),
      'a fetch uploads nothing of a model that is held back',
      'upload: heldBackReason(state, settings) === undefined,',
      'upload: true,'
    ]
  ]),
  ...of('sharing/src/pinned-torrent.ts', [
    [
      PRIVATE('is not announced while it looks'),
      'a private import looks for its manifest without announcing',
      'isWithheld({ provenance: provenance() }) || (before !== undefined',
      '(before !== undefined'
    ],
    [
      PRIVATE('is not announced while it looks'),
      'an import of a withheld model looks for its manifest without announcing',
      ' || (before !== undefined && isWithheld(before))',
      ''
    ]
  ]),
  ...of('sharing/src/pinned-record.ts', [
    [
      PRIVATE('a seeded model leaves the swarm'),
      'a pinned import is private if the request says so',
      'return withMark({ ...facts, ...marked }, this.#request.private, this.#deps.clock)',
      'return { ...facts, ...marked }'
    ],
    [
      testOf(`${DAEMON}/swarm/webseed-keys.test.ts`, 'a manifest that came with a key'),
      'documents fetched with a webseed key are held back',
      'const facts: Provenance = this.#webseeds.isSigned',
      'const facts: Provenance = Date.now() < 0'
    ],
    [
      ROADS('by a webseed'),
      'the result of a pinned import names withheld models',
      'const notice = withheldNotice(ref, await this.#deps.artifacts.standing(pin), this.#deps.advise)',
      'const notice = undefined as string | undefined'
    ]
  ]),
  ...of('sharing/src/webseed-documents.ts', [
    [
      ROADS('that says'),
      'a webseed’s header marks its model as withheld',
      'if (isMarked) this.markedBy',
      'if (Date.now() < 0) this.markedBy'
    ],
    [
      ROADS('whose listing'),
      'a publication’s listing marks its models as withheld',
      "await this.#reading.parse('withheld', bytes, { pin, at: webseed })",
      'Date.now() < 0'
    ]
  ]),
  ...of('sharing/src/seeding.ts', [
    [
      SEEDING('at the end of its fetch'),
      'a finished fetch becomes a seed only if that is still permitted',
      'isSeed = (await this.#isShared(manifestDigest)) && (await swarm.seed(',
      'isSeed = (await swarm.seed('
    ],
    [
      PRIVATE('a seeded model leaves the swarm'),
      'a model that an import withholds leaves the swarm',
      'const reason = state && heldBackReason(state, settings, advise)',
      'const reason = undefined as string | undefined'
    ],
    [
      SEEDING('made private while it joins'),
      'a join asks the rule again',
      'return heldBackReason(standing, settings) === undefined && (await needed.isGiven(manifestDigest))',
      'return settings !== undefined && (await needed.isGiven(manifestDigest))'
    ]
  ]),
  ...of('sharing/src/signed-requests.ts', [
    [KEYS, 'a signed request is recorded before it is sent', 'await artifacts.usedKey(manifestDigest)', '']
  ]),
  ...of('sharing/src/share.ts', [
    [
      testOf(`${DAEMON}/swarm/from-peers.slow.ts`, 'POST /v1/share announces'),
      '`share` says why something is held back',
      'const heldBack = heldBackReason(standing, settings, advise)',
      'const heldBack = undefined as string | undefined'
    ]
  ])
]

const V1 = [
  ...of('catalog/src/seeding.ts', [
    [
      CATALOG('a model made private leaves'),
      'a v1 torrent is joined only if its files may leave',
      ' && (await this.#mayGive(origin))',
      ''
    ],
    [
      CATALOG('a model made private leaves'),
      'a v1 torrent is seeded only as the rule permits',
      'else if (heldBackReason(standing, sharing) !== undefined) return false',
      ''
    ],
    [
      testOf(`${DAEMON}/sources/catalog/seeding-and-resuming.slow.ts`, 'even if the pull that noticed fails'),
      'a restriction that a failed pull found keeps its torrent out of the swarm',
      'if (isGiven) await this.#settle(infohash)',
      'await this.#settle(infohash)'
    ],
    [
      CATALOG('by another source'),
      'a model that another import withholds leaves its v1 swarm',
      'artifacts.listen((manifestDigest) => {',
      'void ((manifestDigest: Sha256Digest) => {'
    ]
  ]),
  ...of('catalog/src/catalog.ts', [
    [
      CATALOG('imported as private'),
      'a private pull counts as private from the start',
      'const provenance = withMark(anchor.provenance, selection.private, clock)',
      'const { provenance } = anchor'
    ],
    [
      CATALOG('imported as private'),
      'a pull uploads only files that may leave',
      'heldBackReason({ provenance }, sharing) === undefined',
      'provenance !== undefined'
    ]
  ]),
  ...of('catalog/src/content.ts', [
    [
      CATALOG("another repository's interrupted import"),
      'a pull knows which bytes its source did not give',
      'const isSeen = await proof.begin({ name, digest: sha256 }, { isEmpty: partial.ranges().length === 0 })',
      'const isSeen = (await proof.begin({ name, digest: sha256 }, { isEmpty: true })) || Date.now() > 0'
    ]
  ]),
  ...of('catalog/src/pull.ts', [
    [
      CATALOG('what its owner keeps'),
      'a pull uploads no bytes that came from another import',
      ' && contents.every((content) => content?.isSeen !== false)',
      ''
    ]
  ])
]

/** Each place that asks the rule, without it. */
export const USES: readonly Mutation[] = [...LIBRARY, ...MIRRORS, ...SWARM, ...V1]
