"""Operations on stored data: memories, cards, discussions and pools."""
