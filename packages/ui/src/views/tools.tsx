import type { ModelElsewhere } from '../bridge.ts'
import { useAnswer, useStore } from '../context.ts'
import { formatBytes } from '../format.ts'
import { Button } from '../parts/button.tsx'
import { started } from '../store.ts'
import { TEXTS } from '../texts.ts'

const T = TEXTS.tools

/** What other tools have on this disk, and is not here. */
export function ToolsSection() {
  const { bridge, rows, inventory, status } = useStore()
  const found = useAnswer(() => bridge.tools(), [inventory.value])
  const here = new Set(rows.value.map(({ ref }) => ref))
  const isHere = ({ as, quants, sizeBytes, hereBytes }: ModelElsewhere): boolean =>
    hereBytes >= sizeBytes || (quants.length > 0 && quants.every((quant) => here.has(`${as}:${quant}`)))
  const models = found?.models.filter((model) => !isHere(model)) ?? []
  if (models.length === 0) return null
  const isShared = status.value?.seedLocal === true
  return (
    <section class="card" aria-label={T.title}>
      <h2>{T.title}</h2>
      <p class="hint">{isShared ? T.shared : T.private}</p>
      <ul class="tools">
        {models.map((model) => (
          <ToolItem key={`${model.tool} ${model.source}`} model={model} isShared={isShared} />
        ))}
      </ul>
      {found?.warnings.map((warning) => (
        <p key={warning} class="hint">
          {warning}
        </p>
      ))}
    </section>
  )
}

function ToolItem({ model, isShared }: { readonly model: ModelElsewhere; readonly isShared: boolean }) {
  const { attempt, bridge } = useStore()
  const { tool, source, as, quants, sizeBytes, takesBytes, sharesBlocks } = model
  const adopt = (): Promise<unknown> => attempt(() => bridge.adopt({ tool, source, private: !isShared }), started)
  return (
    <li>
      <div>
        <strong>{source}</strong>
        <p class="hint">{T.becomes(T.names[tool] ?? tool, as, quants.join(', '))}</p>
      </div>
      <span class="number">{formatBytes(sizeBytes)}</span>
      <span class="hint">{sharesBlocks || takesBytes === 0 ? T.takesNothing : T.takes(formatBytes(takesBytes))}</span>
      <Button text={T.adopt} label={`${T.adopt}: ${source}`} does={adopt} />
    </li>
  )
}
