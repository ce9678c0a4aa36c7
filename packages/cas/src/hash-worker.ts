import { parentPort, workerData } from 'node:worker_threads'
import { commitParts } from './commit.ts'
import { CasError, encodeError, ioError } from './errors.ts'
import { type FilePort, loadFilePort } from './file-port.ts'
import { HashSession } from './hash-session.ts'
import type { Forward, SessionResult, ThreadData, ThreadReply, ThreadRequest } from './thread-protocol.ts'

// The thread behind `HashThreads`: one message, one operation, one reply. Operations of different sessions interleave;
// the messages of one session are answered in order, since whoever sends them waits for each answer that matters.

const main = parentPort
if (main === null) throw new Error('this module is the entry of a worker thread')

const loading = loadFilePort((workerData as ThreadData).filePort)
const sessions = new Map<number, HashSession>()

const reply = (message: ThreadReply): void => main.postMessage(message)

const sessionOf = (session: number): HashSession => {
  const found = sessions.get(session)
  if (found === undefined) throw new CasError('E_THREAD', `no session ${session} in this thread`)
  return found
}

function pump(port: HashSession, request: { id: number; fd: number; progress: boolean; forward?: Forward | undefined }, start: number, end?: number) {
  const { id, fd, forward, progress } = request
  return port.pump(fd, start, end, forward, progress ? bytes => reply({ id, progress: bytes }) : undefined)
}

async function finish(id: number): Promise<SessionResult> {
  const result = sessionOf(id).finish()
  sessions.delete(id)
  return result
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
