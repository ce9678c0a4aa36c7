import { randomBytes } from 'node:crypto'
import { type IncomingHttpHeaders, request } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Machine } from './machine.ts'
import type { Known } from './oracle.ts'
import { digestsIn, tagsIn } from './tagged.ts'
import type { Repo, World } from './world.ts'

/** Something left a machine that nobody may have. */
export class LeakError extends Error {
  override readonly name = 'LeakError'
  /** The door by which it left. */
  readonly door: string

  constructor(door: string, what: string) {
    super(`${door}: ${what}`)
    this.door = door
  }
}

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** A name that nothing ever had. */
const NOBODY = 'nobody/nothing'
const LEAVING_TRIES = 100
const LEAVING_MS = 20
const ABSENT_DIGEST = `sha256:${'0'.repeat(64)}`

/** All that a stranger on the network can ask of a machine, held against what its oracle says. */
export class Doors {
  readonly #machine: Machine
  readonly #world: World
  readonly #told = new Map<string, Set<string>>()
  /** How often each door gave something that it may give. */
  readonly given: Record<string, number> = {}
  /** How often each door was asked for what nobody may have. */
  readonly refused: Record<string, number> = {}

  constructor(machine: Machine, world: World) {
    this.#machine = machine
    this.#world = world
  }

  #get(url: string, asks: Record<string, string> = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const asked = request(url, { agent: this.#machine.agent, headers: asks }, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        const { statusCode: status = 0, headers } = response
        // what turned out to be wrong while it came is cut: what was sent until then counts
        response.on('error', () => undefined)
        response.on('close', () => resolve({ status, headers, body: Buffer.concat(chunks) }))
      })
      // an idle connection may end just when it is used again
      asked.on('error', (error) => (asked.reusedSocket ? resolve(this.#get(url, asks)) : reject(error)))
      asked.end()
    })
  }

  /** What an answer holds must all be among `tags`, and it names nothing that is hidden but what `named` names. */
  #held(door: string, url: string, { body }: Answer, tags: ReadonlySet<string>, named?: ReadonlySet<string>): void {
    const found = tagsIn(body)
    for (const tag of found) if (!tags.has(tag)) throw new LeakError(door, `${url} gave bytes of ${tag}`)
    for (const hex of digestsIn(body))
      if (named?.has(hex) !== true && this.#machine.oracle.isHidden(hex))
        throw new LeakError(door, `${url} named ${hex}, which nobody may know of`)
    if (found.size > 0) this.given[door] = (this.given[door] ?? 0) + 1
  }

  #sameAsAbsent(door: string, url: string, answer: Answer, absent: Answer): void {
    this.#refuses(door)
    const facts = ({ status, headers, body }: Answer): string =>
      JSON.stringify([status, { ...headers, date: undefined }, body.toString('latin1')])
    if (facts(answer) !== facts(absent))
      throw new LeakError(door, `${url} answers ${answer.status}, and not as for what is not here`)
  }

  #refuses(door: string): void {
    this.refused[door] = (this.refused[door] ?? 0) + 1
  }

  /** What was given until now leaves the swarm in a moment, not at once. */
  async #leaving(artifact: Known, check: () => Promise<void>): Promise<void> {
    for (let tries = 0; artifact.isLeaving; tries++) {
      try {
        await check()
        artifact.isLeaving = false
        return
      } catch (error) {
        if (!(error instanceof LeakError) || tries === LEAVING_TRIES) throw error
        await delay(LEAVING_MS)
      }
    }
    await check()
  }

  /** By the node's own webseed, which serves what is in the swarm. */
  webseed(artifact: Known): Promise<void> {
    return this.#leaving(artifact, () => this.#webseed(artifact))
  }

  async #webseed(artifact: Known): Promise<void> {
    const base = this.#machine.doors.webseed
    const { name, infohash } = artifact.torrent
    const paths = [
      ...artifact.files.map((file) => `${name}/${file.name.split('/').map(encodeURIComponent).join('/')}`),
      `${name}/manifest/${artifact.manifest.replace(':', '-')}`,
      `bt/piece-layers/${infohash}`,
      `bt/${infohash}.torrent`
    ]
    const may = this.#machine.oracle.inSwarm(artifact)
    const absent = await this.#get(`${base}/${name.slice(0, -4)}0000/x`)
    for (const path of paths) {
      const url = `${base}/${path}`
      const answer = await this.#get(url)
      if (may === 'no') this.#sameAsAbsent('webseed', `${url} (${factsOf(artifact)})`, answer, absent)
      this.#held('webseed', url, answer, artifact.tags, artifact.mentions)
    }
  }

  /** A peer that knows the infohash, and asks for blocks and hashes. */
  swarm(artifact: Known): Promise<void> {
    return this.#leaving(artifact, () => this.#swarm(artifact))
  }

  async #swarm(artifact: Known): Promise<void> {
    const received = await this.#peerMessages(artifact.torrent.infohash)
    // unchoke, a block, hashes: these are given; an answered handshake tells that it is here
    const gave = received === undefined ? 'nothing' : `a handshake and messages ${received.join(' ')}`
    if (this.#machine.oracle.inSwarm(artifact) === 'no') this.#refuses('swarm')
    if (this.#machine.oracle.inSwarm(artifact) === 'no' && received !== undefined)
      throw new LeakError('swarm', `the infohash of ${artifact.manifest} (${factsOf(artifact)}) got ${gave}`)
    if (received?.some((id) => [1, 7, 22].includes(id))) this.given.swarm = (this.given.swarm ?? 0) + 1
  }

  /** Who answers the handshake of a peer that knows another infohash: of BitTorrent v1, or of what lies beside the artifact. */
  otherTorrents(artifact: Known): Promise<void> {
    return this.#leaving(artifact, () => this.#otherTorrents(artifact))
  }

  async #otherTorrents({ manifest, v1, pins }: Known): Promise<void> {
    const portOfV1 = v1 && (await this.#machine.client.status()).catalog?.peerAddress?.split(':').at(-1)
    if (portOfV1 !== undefined) await this.#handshake('v1 swarm', Number(portOfV1), v1!, manifest)
    for (const pin of pins) await this.#handshake('swarm', this.#machine.doors.peerPort, pin, manifest)
  }

  async #handshake(door: string, port: number, infohash: string, manifest: string): Promise<void> {
    if (!(await isAnswered(port, infohash))) return
    if (this.#machine.oracle.ofTorrent(infohash) === 'no')
      throw new LeakError(door, `the infohash ${infohash}, of ${manifest}, got a handshake`)
    this.given[door] = (this.given[door] ?? 0) + 1
  }

  #peerMessages(infohash: string): Promise<readonly number[] | undefined> {
    return new Promise((resolve) => {
      const socket = connect(this.#machine.doors.peerPort, '127.0.0.1')
      const received: number[] = []
      let isShaken = false
      let held = Buffer.alloc(0)
      const end = (): void => {
        socket.destroy()
        resolve(isShaken ? received : undefined)
      }
      socket.on('error', end).on('close', end)
      socket.write(handshakeFor(infohash))
      // interested; then hashes of a file that no torrent has, which ends the questions
      const hashes = Buffer.alloc(49)
      hashes.writeUInt32BE(2, 41)
      socket.write(Buffer.concat([Buffer.of(0, 0, 0, 1, 2), Buffer.of(0, 0, 0, 49, 21), hashes.subarray(1)]))
      socket.on('data', (bytes) => {
        held = Buffer.concat([held, bytes])
        if (!isShaken && held.length >= 68) {
          isShaken = true
          held = held.subarray(68)
        }
        while (isShaken && held.length >= 4 && held.length >= 4 + held.readUInt32BE()) {
          if (held.readUInt32BE() > 0) received.push(held[4]!)
          held = held.subarray(4 + held.readUInt32BE())
        }
        if (received.includes(22) || received.includes(23)) end()
      })
    })
  }

  /** Everything that the hub's mirror says of a repository by one of its names. */
  async hubMirror(repo: Repo, name: string, revision: string, file?: string): Promise<void> {
    const { oracle, doors } = this.#machine
    const told = this.#toldNames(repo, name)
    const tags = oracle.tagsOfRepo(repo.number, name, told)
    const hidden = oracle.ofRepo(repo.number)
    const isSilent =
      tags.size === 0 &&
      hidden.length > 0 &&
      !hidden.some((each) => oracle.isGiven(each)) &&
      !this.#mayLookUp(repo, name, told)
    const paths =
      file === undefined
        ? [`/api/models/${name}/revision/${revision}?blobs=true`, `/api/models/${name}/tree/${revision}?recursive=true`]
        : [`/${name}/resolve/${revision}/${file}`]
    for (const path of paths) {
      const answer = await this.#get(doors.hub + path)
      const given = oracle.ofRepo(repo.number).filter((each) => oracle.isGiven(each))
      this.#held(
        'hub mirror',
        `${path} (${this.#toldOf(repo)})`,
        answer,
        oracle.tagsOfRepo(repo.number, name, told),
        new Set([...repo.listed, ...given.flatMap(({ mentions }) => [...mentions])])
      )
      // of a name that may be looked for, 429 says that the hub does not answer
      if (!isSilent || (answer.status === 429 && this.#machine.habits.onDemand && name.startsWith('acme/'))) continue
      const absent = await this.#get(doors.hub + path.replace(name, NOBODY))
      this.#sameAsAbsent('hub mirror', `${path} (${this.#toldOf(repo)})`, answer, absent)
    }
  }

  #toldOf(repo: Repo): string {
    const here = this.#machine.oracle.ofRepo(repo.number)
    return [repo.access, ...here.map((each) => `${[...each.tags].join(' ')}: ${factsOf(each)}`)].join(' | ')
  }

  /** What the hub said that a name is, now and before: a mirror may remember it for a moment. */
  #toldNames({ access, names }: Repo, asked: string): ReadonlySet<string> {
    const told = this.#told.get(asked) ?? new Set()
    this.#told.set(asked, told)
    if (access === 'public') told.add(names[0]!)
    return told
  }

  /** Whether what the hub gives to everybody may be had by way of this machine. */
  #mayLookUp(repo: Repo, name: string, told: ReadonlySet<string>): boolean {
    const { habits, oracle } = this.#machine
    const isAllowed = name.startsWith('acme/') && [...told].some((each) => each.startsWith('acme/'))
    return habits.onDemand && isAllowed && !oracle.isKeptFromHub(repo.number, name, told)
  }

  /** What others may have under a name now, with what comes in. */
  #givenUnder(name: string): readonly Known[] {
    const { oracle } = this.#machine
    return [...oracle.ofName(name), ...oracle.awaitedUnder(name)]
  }

  async ociTags(name: string): Promise<void> {
    const url = `${this.#machine.doors.oci}/v2/${name}/tags/list`
    const answer = await this.#get(url)
    const given = this.#givenUnder(name)
    if (given.length === 0) {
      const absent = await this.#get(url.replace(name, NOBODY))
      return this.#sameAsAbsent('OCI mirror', url, answer, absent)
    }
    // the quant of what comes in is not known yet
    if (this.#machine.oracle.awaitedUnder(name).length > 0) return
    const quants = new Set(given.flatMap(({ refs }) => [...refs].map((ref) => ref.split(':')[1])))
    const { tags = [] } = JSON.parse(answer.body.toString()) as { tags?: string[] }
    for (const tag of tags)
      if (!quants.has(tag)) throw new LeakError('OCI mirror', `${url} lists ${tag}, which nobody may know of`)
  }

  /** @returns digests that it names */
  async ociManifest(name: string, quant: string): Promise<ReadonlySet<string>> {
    const url = `${this.#machine.doors.oci}/v2/${name}/manifests/${quant}`
    const answer = await this.#get(url)
    const manifest = this.#machine.oracle.names.get(name)?.get(quant)
    const artifact = manifest === undefined ? undefined : this.#machine.oracle.artifacts.get(manifest)
    const awaited = this.#machine.oracle.awaitedUnder(name)
    if ((artifact === undefined || !this.#machine.oracle.isGiven(artifact)) && awaited.length > 0) {
      this.#held('OCI mirror', url, answer, tagsOf(awaited), mentionsOf(awaited))
      return new Set()
    }
    if (artifact === undefined || !this.#machine.oracle.isGiven(artifact)) {
      const absent = await this.#get(url.replace(name, NOBODY))
      this.#sameAsAbsent('OCI mirror', url, answer, absent)
      return new Set()
    }
    this.#held('OCI mirror', `${url} (${artifact.manifest}, ${factsOf(artifact)})`, answer, artifact.tags)
    return digestsIn(answer.body)
  }

  async ociBlob(name: string, digest: string): Promise<void> {
    const url = `${this.#machine.doors.oci}/v2/${name}/blobs/${digest}`
    const answer = await this.#get(url, { range: 'bytes=0-1023' })
    const given = this.#givenUnder(name)
    this.#held('OCI mirror', url, answer, tagsOf(given), mentionsOf(given))
    if (given.some(({ files, beside }) => files.some((file) => file.digest === digest) || beside.has(hexOf(digest))))
      return
    if (answer.status === 206 || answer.status === 200) return
    const absent = await this.#get(url.replace(name, NOBODY).replace(digest, ABSENT_DIGEST), { range: 'bytes=0-1023' })
    this.#sameAsAbsent('OCI mirror', url, answer, absent)
  }

  /** The names and files of a bucket below a prefix, and the files themselves; `ns/name` or one quant of it. */
  async s3(name: string, quant: string, files: readonly string[]): Promise<void> {
    const { oracle, doors } = this.#machine
    const bucket = `${doors.s3}/models`
    const listing = `${bucket}?list-type=2&prefix=${name}/`
    const listed = await this.#get(listing)
    const given = this.#givenUnder(name)
    if (given.length === 0) {
      const absent = await this.#get(listing.replace(name, NOBODY))
      const plain = { ...listed, headers: {}, body: Buffer.from(listed.body.toString().replaceAll(name, NOBODY)) }
      this.#sameAsAbsent('S3 mirror', listing, plain, { ...absent, headers: {} })
    }
    this.#held('S3 mirror', listing, listed, tagsOf(given))
    const manifest = oracle.names.get(name)?.get(quant)
    const artifact = manifest === undefined ? undefined : oracle.artifacts.get(manifest)
    const awaited = oracle.awaitedUnder(name)
    const may = [...awaited, ...(artifact !== undefined && oracle.isGiven(artifact) ? [artifact] : [])]
    const absent = await this.#get(`${bucket}/${NOBODY}/q4_0/x`)
    for (const file of files) {
      const url = `${bucket}/${name}/${quant}/${file.split('/').map(encodeURIComponent).join('/')}`
      const answer = await this.#get(url)
      if (may.length === 0) this.#sameAsAbsent('S3 mirror', `${url} (${artifact && factsOf(artifact)})`, answer, absent)
      this.#held('S3 mirror', url, answer, tagsOf(may), mentionsOf(may))
    }
  }

  /** Every door, for a digest that nobody may know of: by the names of all that is here, and of an artifact that has it. */
  async digest(hex: string, owner: Known | undefined): Promise<void> {
    for (const name of this.#machine.oracle.names.keys()) await this.ociBlob(name, `sha256:${hex}`)
    if (owner !== undefined) await this.all(owner)
  }

  /** What the hub's mirror says of a repository that a stranger's manifest claims, and no hub has. */
  async #claimed({ files, tags, claims }: Known, may: boolean): Promise<void> {
    for (const path of [
      `/api/models/${claims!.name}/revision/${claims!.commit}?blobs=true`,
      ...files.map(({ name }) => `/${claims!.name}/resolve/${claims!.commit}/${name}`)
    ]) {
      const answer = await this.#get(this.#machine.doors.hub + path)
      this.#held('hub mirror', path, answer, may ? tags : new Set())
      if (!may) this.#refuses('hub mirror')
    }
  }

  /** All doors, for one artifact, by all its names. */
  async all(artifact: Known): Promise<void> {
    await this.webseed(artifact)
    await this.swarm(artifact)
    await this.otherTorrents(artifact)
    await this.names(artifact)
  }

  /** The mirrors, by all names of an artifact. */
  async names(artifact: Known): Promise<void> {
    for (const ref of artifact.refs) {
      const [name, quant] = ref.split(':') as [string, string]
      await this.ociTags(name)
      const named = await this.ociManifest(name, quant)
      const hexes = new Set([...named, ...artifact.files.map(({ digest }) => hexOf(digest)), ...artifact.beside])
      for (const hex of hexes) await this.ociBlob(name, `sha256:${hex}`)
      await this.s3(
        name,
        quant,
        artifact.files.map((file) => file.name)
      )
    }
    const { repo } = artifact
    const home = repo && this.#world.repos[repo.number]
    for (const name of home?.names ?? []) {
      await this.hubMirror(home!, name, repo!.commit)
      const files = home!.commits.find(({ sha }) => sha === repo!.commit)?.files ?? []
      const claimed = artifact.named === undefined ? [] : artifact.files
      for (const file of new Set([...files, ...claimed].map((each) => each.name)))
        await this.hubMirror(home!, name, repo!.commit, file)
    }
    if (artifact.claims !== undefined) await this.#claimed(artifact, this.#machine.oracle.isGiven(artifact))
  }
}

const tagsOf = (all: readonly Known[]): ReadonlySet<string> => new Set(all.flatMap(({ tags }) => [...tags]))
const mentionsOf = (all: readonly Known[]): ReadonlySet<string> => new Set(all.flatMap(({ mentions }) => [...mentions]))

const hexOf = (digest: string): string => digest.slice('sha256:'.length)

/** Whether a peer answers a handshake for the first 20 bytes of an infohash. */
function isAnswered(port: number, infohash: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    let received = 0
    socket.on('error', () => resolve(false)).on('close', () => resolve(false))
    socket.write(handshakeFor(infohash))
    socket.on('data', ({ length }) => {
      received += length
      if (received < 68) return
      resolve(true)
      socket.destroy()
    })
  })
}

const handshakeFor = (infohash: string): Buffer =>
  Buffer.concat([
    Buffer.from('\x13BitTorrent protocol\0\0\0\0\0\0\0\x14', 'latin1'),
    Buffer.from(infohash.slice(0, 40), 'hex'),
    randomBytes(20)
  ])

export const factsOf = ({ arrivals, decision, isLeaving, repo, isOfHub }: Known): string =>
  `${arrivals.join(' ')}; ${decision}${isLeaving ? '; should have left' : ''}${repo ? `; repository ${repo.number} ${repo.name} ${isOfHub}` : ''}`
