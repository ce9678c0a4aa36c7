import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { OPEN_BLOB } from './blob-reader.ts'
import type { BlockPipe } from './block-pipe.ts'
import { commitParts } from './commit.ts'
import { CasError, encodeError, ioError } from './errors.ts'
import { type FilePort, loadFilePort } from './file-port.ts'
import { HashSession } from './hash-session.ts'
import type {
  SessionResult,
  SmallCheck,
  SmallRun,
  SmallRunOutcome,
  ThreadData,
  ThreadReply,
  ThreadRequest
} from './thread-protocol.ts'

// The thread behind `HashThreads`: one message, one operation, one reply. Operations of different sessions interleave;
// the messages of one session are answered in order, since whoever sends them waits for each answer that matters.

const main = parentPort
if (main === null) throw new Error('this module is the entry of a worker thread')

// Hashing takes what the event loop leaves: with both cores busy a request then waits half as long. On Linux this is the
// priority of the thread; elsewhere it would be that of the whole process.
if (process.platform === 'linux') {
  try {
    setPriority(0, 5)
  } catch {
    // A sandbox may refuse: it is a courtesy, nothing depends on it.
  }
}

const loading = loadFilePort((workerData as ThreadData).filePort)
const sessions = new Map<number, HashSession>()

const reply = (message: ThreadReply): void => main.postMessage(message)

const sessionOf = (session: number): HashSession => {
  const found = sessions.get(session)
  if (found === undefined) throw new CasError('E_THREAD', `no session ${session} in this thread`)
  return found
}

function pump(
  port: HashSession,
  request: { id: number; fd: number; progress: boolean; forward?: BlockPipe | undefined },
  start: number,
  end?: number
) {
  const { id, fd, forward, progress } = request
  return port.pump(fd, start, end, forward, progress ? (bytes) => reply({ id, progress: bytes }) : undefined)
}

async function finish(id: number): Promise<SessionResult> {
  const result = sessionOf(id).finish()
  sessions.delete(id)
  return result
}

async function runSmall(port: FilePort, { spec, fd }: SmallRun): Promise<SmallRunOutcome> {
  let session: HashSession | undefined
  try {
    session = await HashSession.begin(port, spec)
    await session.pump(fd, 0, undefined, undefined, undefined)
    return { result: session.finish() }
  } catch (error) {
    await session?.drop()
    return { error: encodeError(error) }
  }
}

/** False also for what cannot be opened or read: whoever asked looks again, and finds out why. */
async function check(port: FilePort, { path, digest }: SmallCheck): Promise<boolean> {
  try {
    const fd = port.openSync(path, OPEN_BLOB)
    try {
      if (!port.fstatSync(fd).isFile()) return false
      const session = await HashSession.begin(port, { flat: true, attachments: [] })
      await session.pump(fd, 0, undefined, undefined, undefined)
      return session.finish().digest === digest
    } finally {
      port.closeSync(fd)
    }
  } catch {
    return false
  }
}

async function oneByOne<Item, Outcome>(
  items: readonly Item[],
  work: (item: Item) => Promise<Outcome>
): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (const item of items) outcomes.push(await work(item))
  return outcomes
}

async function handle(port: FilePort, request: ThreadRequest): Promise<unknown> {
  switch (request.op) {
    case 'begin':
      sessions.set(request.session, await HashSession.begin(port, request.spec, request.from))
      return undefined
    case 'feed':
      sessionOf(request.session).feed(new Uint8Array(request.block, 0, request.length))
      return undefined
    case 'pump':
      return { bytes: await pump(sessionOf(request.session), request, request.start, request.end) }
    case 'run': {
      const session = await HashSession.begin(port, request.spec)
      sessions.set(request.session, session)
      await pump(session, request, 0)
      return finish(request.session)
    }
    case 'finish':
      return finish(request.session)
    case 'drop': {
      const session = sessions.get(request.session)
      sessions.delete(request.session)
      await session?.drop()
      return undefined
    }
    case 'runSmall':
      return oneByOne(request.items, (item) => runSmall(port, item))
    case 'check':
      return oneByOne(request.items, (item) => check(port, item))
    case 'commit':
      return commitParts(port, request.items)
    case 'datasync':
      try {
        port.fdatasyncSync(request.fd)
      } catch (error) {
        throw ioError(error, 'sync part')
      }
      return undefined
  }
}

main.on('message', async (request: ThreadRequest) => {
  const { id } = request
  try {
    reply({ id, result: await handle(await loading, request) })
  } catch (error) {
    reply({ id, error: encodeError(error) })
  }
})
