import type { Job, Status } from '@svc/client/protocol'
import { useState } from 'preact/hooks'
import type { BridgeClient, Meaning } from '../bridge.ts'
import { useStore } from '../context.ts'
import { started } from '../store.ts'
import { TEXTS } from '../texts.ts'

const T = TEXTS.get

type SourceMeaning = Exclude<Meaning, { readonly kind: 'hf' | 'unknown' | 'absent' }>

interface SourceProps {
  readonly meaning: SourceMeaning
  /** The name that it should have. */
  readonly as?: string | undefined
}

/** Asks what a folder, an image or a magnet link does not say, and imports it. */
export function SourceForm({ meaning, as }: SourceProps) {
  const { attempt, bridge, status } = useStore()
  const [name, setName] = useState(as ?? suggestionOf(meaning))
  const [isPrivate, setPrivate] = useState(meaning.kind === 'bt' && meaning.private === true)
  const [pin, setPin] = useState(meaning.kind === 'bt' ? (meaning.manifestDigest ?? '') : '')
  return (
    <form
      class="card slim"
      onSubmit={(event) => {
        event.preventDefault()
        void attempt(() => importOf(bridge, meaning, { name: name.trim(), pin: pin.trim(), isPrivate }), started)
      }}
    >
      <p>{sentenceOf(meaning)}</p>
      {meaning.kind === 'bt' && (
        <label class="wide-field">
          {T.pin}
          <input required value={pin} onInput={(event) => setPin(event.currentTarget.value)} />
        </label>
      )}
      <label class="wide-field">
        {T.as}
        <input required={meaning.kind !== 'bt'} value={name} onInput={(event) => setName(event.currentTarget.value)} />
      </label>
      {meaning.kind !== 'oci' && (
        <label>
          <input type="checkbox" checked={isPrivate} onChange={(event) => setPrivate(event.currentTarget.checked)} />{' '}
          {TEXTS.model.keepPrivate}
        </label>
      )}
      {meaning.kind === 'local' && !isPrivate && isSharedUnasked(status.value) && (
        <p class="hint">{T.meaning.shared}</p>
      )}
      <footer>
        <button type="submit" class="main">
          {T.import}
        </button>
      </footer>
    </form>
  )
}

/** A name from the last two parts of a path or image. */
function suggestionOf(meaning: SourceMeaning): string {
  if (meaning.kind === 'bt') return meaning.as ?? ''
  const path = meaning.kind === 'local' ? meaning.path : meaning.image.replace(/[:@][^/]*$/, '')
  const parts = path
    .toLowerCase()
    .split('/')
    .map((part) => part.replace(/[^a-z0-9._-]+/g, '-').replace(/^[^a-z0-9]+/, ''))
  return parts
    .filter((part) => part !== '')
    .slice(-2)
    .join('/')
}

/** Whether models from disk are shared although nobody has decided that: the terminal would ask, or say so. */
const isSharedUnasked = (status: Status | undefined): boolean =>
  status?.swarm.enabled === true && status.swarm.seed && status.seedLocal === undefined

function sentenceOf(meaning: SourceMeaning): string {
  if (meaning.kind === 'local') return T.meaning.local(meaning.path)
  return meaning.kind === 'oci' ? T.meaning.oci(meaning.image) : T.meaning.bt
}

interface Choice {
  readonly name: string
  readonly pin: string
  readonly isPrivate: boolean
}

function importOf(bridge: BridgeClient, meaning: SourceMeaning, { name, pin, isPrivate }: Choice): Promise<Job> {
  const kept = isPrivate && { private: true }
  if (meaning.kind === 'local')
    return bridge.importLocal({ paths: [meaning.path], as: name, names: 'normalized', malformed: 'refuse', ...kept })
  if (meaning.kind === 'oci') return bridge.importOci({ image: meaning.image, as: name, malformed: 'refuse' })
  const { kind: _, as: __, private: ___, ...shared } = meaning
  const named = name !== '' && { as: name }
  return bridge.importBt({ ...shared, manifestDigest: pin, manifestFromPeers: true, ...named, ...kept })
}
