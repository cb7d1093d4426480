// Day or night: as the system has it, or as somebody chose, which this browser then remembers.

import { SegmentedControl, localStorageColorSchemeManager, useMantineColorScheme } from "@mantine/core";
import { IconDeviceDesktop, IconMoon, IconSun } from "@tabler/icons-react";

export const kept = localStorageColorSchemeManager({ key: "mneme-theme" });

const THEMES = [
  { value: "auto", label: "As the system", icon: IconDeviceDesktop },
  { value: "light", label: "Light", icon: IconSun },
  { value: "dark", label: "Dark", icon: IconMoon },
] as const;

export function ThemeSwitch() {
  const { colorScheme, setColorScheme } = useMantineColorScheme({ keepTransitions: true }); // or it writes a style into the page
  return (
    <SegmentedControl
      className="theme"
      size="xs"
      fullWidth
      aria-label="Theme"
      value={colorScheme}
      onChange={(chosen) => setColorScheme(chosen as typeof colorScheme)}
      transitionDuration={0}
      data={THEMES.map(({ value, label, icon: Icon }) => ({
        value,
        label: (
          <span title={label}>
            <Icon size={16} aria-hidden />
            <span className="unseen">{label}</span>
          </span>
        ),
      }))}
    />
  );
}
