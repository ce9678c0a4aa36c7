import { mkdir, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Readable } from 'node:stream'
import { hubTokenFile } from '@svc/client/protocol'
import { ifAbsent } from '@svc/internal-errors'
import { nodeFilePort, replaceFile } from '@svc/internal-files'
import { CliError, usage } from '../errors.ts'
import { canAsk } from '../questions/question.ts'
import type { Session } from '../session.ts'

/** `svc login hf`: stores a token in the file of the hub's own client, which the daemon reads at each import. */
export async function login(session: Session): Promise<void> {
  const file = fileOf(session)
  const token = (await (canAsk(session) ? hidden(session, 'Token of the hub: ') : firstLine(session))).trim()
  if (!/^[\x21-\x7e]{1,4000}$/.test(token))
    throw usage('the input is not a token', 'paste one line from Settings, Access Tokens of the hub')
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  await replaceFile(nodeFilePort, file, Buffer.from(token))
  if (session.json) return session.document({ file })
  session.note(`stored in ${file}; the daemon reads it at the next import`)
}

export async function logout(session: Session): Promise<void> {
  const file = fileOf(session)
  const wasThere = (await rm(file).then(() => true, ifAbsent)) === true
  if (session.json) return session.document({ file, removed: wasThere })
  session.note(wasThere ? `removed ${file}` : `there is no token in ${file}`)
}

function fileOf({ terminal }: Session): string {
  const file = hubTokenFile(terminal.env)
  if (file === undefined) throw usage('the home folder is unknown', 'set HOME or HF_HOME')
  return file
}

async function firstLine({ terminal }: Session): Promise<string> {
  let text = ''
  for await (const chunk of terminal.stdin ?? []) {
    text += String(chunk)
    if (text.includes('\n') || text.length > 4096) break
  }
  return text.split('\n', 1)[0]!
}

type RawInput = Readable & { setRawMode?(isRaw: boolean): unknown }

/** Asks without showing what is typed. @throws CliError with exit code 130 on Ctrl-C */
async function hidden({ terminal }: Session, question: string): Promise<string> {
  const stdin: RawInput = terminal.stdin!
  terminal.stderr.write(question)
  stdin.setRawMode?.(true)
  let typed = ''
  try {
    for await (const chunk of stdin)
      for (const key of String(chunk)) {
        if (key === '\r' || key === '\n' || key === '\u0004') return typed
        if (key === '\u0003')
          throw new CliError('interrupted', 'interrupted; nothing was stored', { code: 'E_INTERRUPTED' })
        typed = key === '\u007f' || key === '\b' ? typed.slice(0, -1) : typed + key
      }
    return typed
  } finally {
    stdin.setRawMode?.(false)
    terminal.stderr.write('\n')
  }
}
