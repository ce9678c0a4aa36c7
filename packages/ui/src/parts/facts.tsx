import type { ComponentChildren } from 'preact'

interface FactsProps {
  readonly facts: readonly (readonly [name: string, value: ComponentChildren])[]
}

/** Names with their values; a fact without a value is left out. */
export const FactList = ({ facts }: FactsProps) => (
  <dl class="facts">
    {facts
      .filter(([, value]) => value !== '' && value !== undefined)
      .map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
  </dl>
)
